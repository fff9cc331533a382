"""The expression language: its values, its functions, and what an expression means in Python, in numpy and in C++."""
