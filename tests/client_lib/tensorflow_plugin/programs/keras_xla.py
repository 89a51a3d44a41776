"""Keras's evaluate, fit and its validation, all compiled by XLA, as Keras 3 does by itself on a
GPU. Nothing of Spillway is in it.
"""
import numpy as np
import tensorflow as tf

layers = tf.keras.layers
model = tf.keras.Sequential([layers.Input((8,)), layers.Dense(8, activation="relu"), layers.Dense(4)])
model.compile(tf.keras.optimizers.SGD(0.1, momentum=0.9), "mse", metrics=["mae"], jit_compile=True)
examples, targets = np.ones((32, 8), np.float32), np.ones((32, 4), np.float32)
model.evaluate(examples, targets, batch_size=16, verbose=0)
history = model.fit(examples, targets, batch_size=16, verbose=0, validation_data=(examples, targets))
print("RESULT", history.history["loss"])
