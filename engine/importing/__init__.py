"""Operators of another language as operators of this one, as `import` declarations say."""
