"""Lane programs printed as HIP C++."""
