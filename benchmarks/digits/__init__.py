"""The parts of mnist.py: `fits` and `perceptron` learn digits, `banana` the other set; each in a process of its own."""
