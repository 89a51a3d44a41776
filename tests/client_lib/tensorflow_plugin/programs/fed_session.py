"""A session of TensorFlow 1 that feeds each activation in turn. Nothing of Spillway is in it.

Prints the sums of the gradients' absolute values: first with no activation fed.
"""
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
images = tf.placeholder(tf.float32, (256, 64), name="images")
hidden, fed = images, []
for index in range(6):
    weights = tf.get_variable("w%d" % index, (64, 64),
                              initializer=tf.glorot_uniform_initializer(seed=index))
    for activation in (lambda x, w=weights: tf.matmul(x, w), tf.nn.elu, tf.sigmoid):
        hidden = activation(hidden)
        fed.append(hidden)
gradients = tf.gradients(tf.reduce_mean(hidden * hidden), tf.trainable_variables())

sums = []
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for feeds in [{}] + [{activation: np.full((256, 64), 0.9)} for activation in fed]:
        found = session.run(gradients, {images: np.ones((256, 64)), **feeds})
        sums.append([float(np.abs(gradient).sum()) for gradient in found])
print("RESULT", sums)
