"""The reference: programs of any stage evaluated in numpy, on random inputs, compared with other results."""
