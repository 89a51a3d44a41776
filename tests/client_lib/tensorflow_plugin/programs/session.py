"""A program as users write it: a graph and a session of TensorFlow 1. Nothing of Spillway is in it.

Its batch is open. Prints the losses and a digest of all variables.
"""
import hashlib

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(1)
images = tf.placeholder(tf.float32, (None, 64), name="images")
labels = tf.placeholder(tf.int64, (None,), name="labels")
hidden = images
for index in range(4):
    weights = tf.get_variable("w%d" % index, (64, 64), initializer=tf.random_normal_initializer(
        stddev=0.1, seed=index))
    hidden = tf.nn.relu(tf.matmul(hidden, weights) + tf.get_variable("b%d" % index, (64,)))
loss = tf.reduce_mean(
    tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=hidden), name="loss")
train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)

random = np.random.default_rng(1)
losses = []
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(5):
        feeds = {images: random.normal(size=(128, 64)), labels: random.integers(0, 64, 128)}
        losses.append(float(session.run([loss, train], feeds)[0]).hex())
    values = session.run(tf.global_variables())
digest = hashlib.sha256(b"".join(value.tobytes() for value in values)).hexdigest()
print("RESULT", losses, digest)
