"""Programs as data: element types, tensor types, typed graphs, and numbers that stand for attributes and types."""
