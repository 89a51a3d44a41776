"""A stand-in for Horovod where it cannot be built: what client_lib/python/samples use of it, in
tensorflow.py. It proves nothing of Horovod: real_horovod.py runs the same with the real one."""
