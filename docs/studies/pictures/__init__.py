"""Pictures of pages that explain: what an interval means, which method is needed."""
