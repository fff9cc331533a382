"""Printed kernels compiled, loaded and launched: on the CPU, on AMD GPUs, on NVIDIA GPUs."""
