"""What benchmarks and studies share: data sets at hand, machines, results, documents, tables."""
