"""A stand-in for Horovod if it cannot be built: the part that client_lib/python/samples use, in
tensorflow.py. It proves nothing of Horovod: real_horovod.py runs the same with the real one."""
