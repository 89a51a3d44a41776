"""A program as users write it: Keras's fit. Nothing of Spillway is in it.

Prints the losses and a digest of all variables.
"""
import hashlib

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
layers = tf.keras.layers
model = tf.keras.Sequential([
    layers.Input((12, 12, 1)), layers.Conv2D(8, 3, activation="relu"), layers.BatchNormalization(),
    layers.Conv2D(8, 3, activation="relu"), layers.Flatten(), layers.Dropout(0.5, seed=1),
    layers.Dense(10)])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
random = np.random.default_rng(1)
images = random.normal(size=(64, 12, 12, 1)).astype(np.float32)
labels = random.integers(0, 10, 64)
history = model.fit(images, labels, batch_size=16, epochs=2, shuffle=False, verbose=0)
variables = model.variables + list(model.optimizer.variables)
digest = hashlib.sha256(b"".join(v.numpy().tobytes() for v in variables)).hexdigest()
print("RESULT", [float(loss).hex() for loss in history.history["loss"]], digest)
