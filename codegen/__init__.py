"""Extracted terms to HIP C++, the compilers for it and the devices it runs on."""
