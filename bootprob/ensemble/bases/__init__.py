"""Classifiers of others over bootstrap samples: training, scores, what they left out."""
