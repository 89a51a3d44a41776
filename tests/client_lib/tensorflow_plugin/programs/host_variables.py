"""A program as users write it: a function trains variables that lie on another device than it
does. Nothing of Spillway is in it."""
import tensorflow as tf

with tf.device("/CPU:1"):
    table = tf.Variable(tf.ones((256, 256)))  # 256 KiB.
with tf.device("/CPU:0"):
    weights = tf.Variable(tf.ones((256, 64)))  # 64 KiB.


@tf.function
def step(batch):
    with tf.device("/CPU:0"):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.nn.softmax(batch @ table) @ weights)
        for variable, gradient in zip((table, weights), tape.gradient(loss, (table, weights))):
            variable.assign_sub(gradient)
        return loss


print("RESULT", float(step(tf.ones((8, 256)))).hex())
