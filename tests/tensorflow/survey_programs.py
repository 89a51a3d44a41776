"""The training programs of forecast_survey.py: TensorFlow 2 as people write it, one kind of model,
optimizer or control flow each, in sizes of which a step takes a second or two on a CPU, and whose
activations outweigh their weights.

A program is a function with @program, which gets TensorFlow and returns a Program.
"""
import numpy as np

PROGRAMS = {}


class Program:
    """`step` trains on tensors as `fed` has them. `batch`: their first dimension, which the graph
    leaves open; None: the graph knows all their shapes. `flags`: others that a user has to give."""

    def __init__(self, step, fed, batch=None, flags=(), add_shapes=True):
        self.step, self.fed, self.batch = step, fed, batch
        self.flags, self.add_shapes = list(flags), add_shapes


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def images(batch, *shape, seed=1):
    return np.random.RandomState(seed).normal(size=(batch, *shape)).astype(np.float32)


def integers(high, *shape, seed=2):
    return np.random.RandomState(seed).randint(0, high, size=shape).astype(np.int32)


def gradient_step(tf, model, optimizer, loss_of, variables=None):
    """A step of a GradientTape; the optimizer's slots are made ahead."""
    variables = variables if variables is not None else model.trainable_variables
    build = getattr(optimizer, "build", None)
    if build:
        build(variables)

    def step(*fed):
        with tf.GradientTape() as tape:
            loss = loss_of(*fed)
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables))
        return loss
    return step


def classifier(tf, model, optimizer):
    xent = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return gradient_step(tf, model, optimizer,
                         lambda x, y: xent(y, model(x, training=True)))


def fitted(tf, model, fed):
    """What model.fit runs: Keras's own train_step, metrics and all."""
    model(fed[0][:1])
    model.optimizer.build(model.trainable_variables)
    for metric in model.metrics:
        metric.reset_state()
    model.train_step((tf.constant(fed[0][:2]), tf.constant(fed[1][:2])))
    return lambda x, y: model.train_step((x, y))


# ---- Keras applications.

def application(tf, build, batch, side, optimizer, **more):
    model = build(weights=None, input_shape=(side, side, 3), classes=10,
                  classifier_activation=None, **more)
    return Program(classifier(tf, model, optimizer),
                   [images(batch, side, side, 3), integers(10, batch)], batch)


@program
def efficientnet_v2(tf):
    """EfficientNetV2-B0, SGD with momentum"""
    return application(tf, tf.keras.applications.EfficientNetV2B0, 16, 96,
                       tf.keras.optimizers.SGD(0.01, momentum=0.9))


@program
def xception(tf):
    """Xception, RMSprop"""
    return application(tf, tf.keras.applications.Xception, 12, 96,
                       tf.keras.optimizers.RMSprop(1e-3))


@program
def nasnet_mobile(tf):
    """NASNet-mobile by model.fit's own step, Adam"""
    model = tf.keras.applications.NASNetMobile(weights=None, input_shape=(96, 96, 3), classes=10)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    fed = [images(12, 96, 96, 3), integers(10, 12)]
    return Program(fitted(tf, model, fed), fed, 12)


@program
def mobilenet_v3_mixed(tf):
    """MobileNetV3-Small, mixed_float16 with LossScaleOptimizer, by model.fit's own step"""
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    model = tf.keras.applications.MobileNetV3Small(weights=None, input_shape=(96, 96, 3),
                                                   classes=10)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    fed = [images(16, 96, 96, 3), integers(10, 16)]
    return Program(fitted(tf, model, fed), fed, 16)


# ---- Images.

@program
def unet_transposed(tf):
    """U-Net with Conv2DTranspose, dropout, Adam, all shapes in the graph"""
    layers = tf.keras.layers
    x = entry = layers.Input((64, 64, 3))
    skips = []
    for width in (16, 32):
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
        x = layers.BatchNormalization()(x)
        x = layers.Dropout(0.1)(x)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(64, 3, padding="same", activation="relu")(x)
    for width in (32, 16):
        x = layers.Conv2DTranspose(width, 2, strides=2, padding="same")(x)
        x = layers.Concatenate()([x, skips.pop()])
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
    model = tf.keras.Model(entry, layers.Conv2D(4, 1)(x))
    return Program(classifier(tf, model, tf.keras.optimizers.Adam()),
                   [images(16, 64, 64, 3), integers(4, 16, 64, 64)])


@program
def unet_upsampled(tf):
    """U-Net with UpSampling2D (bilinear and nearest), images of any size, Nadam"""
    layers = tf.keras.layers
    x = entry = layers.Input((None, None, 3))
    a = layers.Conv2D(16, 3, padding="same", activation="swish")(x)
    b = layers.Conv2D(32, 3, padding="same", activation="swish")(layers.AveragePooling2D()(a))
    x = layers.Conv2D(48, 3, padding="same", activation="swish")(layers.MaxPooling2D()(b))
    x = layers.Concatenate()([layers.UpSampling2D(interpolation="bilinear")(x), b])
    x = layers.Concatenate()([layers.UpSampling2D()(x), a])
    model = tf.keras.Model(entry, layers.Conv2D(4, 1)(x))
    return Program(classifier(tf, model, tf.keras.optimizers.Nadam()),
                   [images(8, 64, 64, 3), integers(4, 8, 64, 64)], 8)


@program
def depthwise_group_norm(tf):
    """Separable and depthwise convolutions, GroupNormalization, LayerNormalization, Lion"""
    layers = tf.keras.layers
    x = entry = layers.Input((48, 48, 3))
    x = layers.Conv2D(32, 3, padding="same")(x)
    for _ in range(3):
        y = layers.DepthwiseConv2D(5, padding="same")(x)
        y = layers.GroupNormalization(8)(y)
        y = layers.SeparableConv2D(32, 3, padding="same", activation="gelu")(y)
        x = layers.LayerNormalization()(layers.Add()([x, y]))
    model = tf.keras.Model(entry, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
    return Program(classifier(tf, model, tf.keras.optimizers.Lion()),
                   [images(16, 48, 48, 3), integers(10, 16)], 16)


@program
def convnext_blocks(tf):
    """ConvNeXt's blocks: LayerNormalization, layer scale, stochastic depth per example, AdamW"""
    layers = tf.keras.layers
    from keras.src.applications import convnext  # pylint: disable=import-outside-toplevel
    x = entry = layers.Input((64, 64, 3))
    x = layers.LayerNormalization(epsilon=1e-6)(layers.Conv2D(48, 4, 4)(x))
    for width in (48, 96):
        if width != 48:
            x = layers.Conv2D(width, 2, 2)(layers.LayerNormalization(epsilon=1e-6)(x))
        for _ in range(2):
            y = layers.DepthwiseConv2D(7, padding="same")(x)
            y = layers.LayerNormalization(epsilon=1e-6)(y)
            y = layers.Dense(width)(layers.Activation("gelu")(layers.Dense(4 * width)(y)))
            y = convnext.LayerScale(1e-2, width)(y)
            # Whole examples are dropped: noise of [batch, 1, 1, 1].
            x = x + layers.Dropout(0.1, noise_shape=(None, 1, 1, 1))(y)
    model = tf.keras.Model(entry, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
    return Program(classifier(tf, model, tf.keras.optimizers.AdamW(1e-3)),
                   [images(24, 64, 64, 3), integers(10, 24)], 24)


@program
def volumes(tf):
    """3-D convolutions, Conv3DTranspose, Adagrad"""
    layers = tf.keras.layers
    x = entry = layers.Input((16, 32, 32, 2))
    x = a = layers.Conv3D(8, 3, padding="same", activation="relu")(x)
    x = layers.Conv3D(16, 3, padding="same", activation="relu")(layers.MaxPooling3D()(x))
    x = layers.BatchNormalization()(x)
    x = layers.Conv3DTranspose(8, 2, strides=2)(x)
    x = layers.Concatenate()([x, a])
    model = tf.keras.Model(entry, layers.Conv3D(3, 1)(x))
    return Program(classifier(tf, model, tf.keras.optimizers.Adagrad()),
                   [images(4, 16, 32, 32, 2), integers(3, 4, 16, 32, 32)], 4)


@program
def augmented(tf):
    """Keras preprocessing layers (flip, rotation, zoom, contrast, crop) in the training step"""
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        layers.Rescaling(1 / 255.0), layers.RandomFlip(), layers.RandomRotation(0.1),
        layers.RandomZoom(0.1), layers.RandomContrast(0.1), layers.RandomCrop(56, 56),
        layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(),
        layers.Conv2D(32, 3, activation="relu"), layers.SpatialDropout2D(0.2),
        layers.GlobalMaxPooling2D(), layers.Dense(10)])
    model.build((None, 64, 64, 3))
    return Program(classifier(tf, model, tf.keras.optimizers.Adamax()),
                   [images(16, 64, 64, 3), integers(10, 16)], 16)


@program
def detection(tf):
    """Two stages: proposals by NonMaxSuppression, crop_and_resize, two losses"""
    layers = tf.keras.layers
    body = tf.keras.Sequential([layers.Conv2D(32, 3, 2, "same", activation="relu"),
                                layers.Conv2D(64, 3, 2, "same", activation="relu")])
    head = layers.Conv2D(5, 1)
    second = tf.keras.Sequential([layers.Conv2D(64, 3, activation="relu"), layers.Flatten(),
                                  layers.Dense(4)])
    body.build((None, 96, 96, 3)), head.build((None, 24, 24, 64))
    second.build((None, 7, 7, 64))
    variables = (body.trainable_variables + head.trainable_variables +
                 second.trainable_variables)

    def loss_of(x, boxes):
        features = body(x)
        out = head(features)
        scores = tf.reshape(out[..., 0], [tf.shape(x)[0], -1])
        shown = tf.sigmoid(tf.reshape(out[..., 1:], [tf.shape(x)[0], -1, 1, 4]))
        kept = tf.image.combined_non_max_suppression(
            tf.stop_gradient(shown), tf.stop_gradient(tf.sigmoid(scores))[..., None], 20, 20)
        count = tf.shape(x)[0] * 20
        owner = tf.repeat(tf.range(tf.shape(x)[0]), 20)
        crops = tf.image.crop_and_resize(
            features, tf.reshape(kept.nmsed_boxes, [-1, 4]), owner, [7, 7])
        deltas = tf.reshape(second(crops), [-1, 20, 4])
        return (tf.reduce_mean(tf.square(deltas - boxes[:, None])) +
                tf.reduce_mean(tf.nn.softplus(scores)) + 0.0 * tf.cast(count, tf.float32))
    return Program(gradient_step(tf, None, tf.keras.optimizers.SGD(0.01, momentum=0.9), loss_of,
                                 variables),
                   [images(8, 96, 96, 3), np.abs(images(8, 4))], 8)


# ---- Generative models.

@program
def vae(tf):
    """A variational autoencoder: its own train_step, reparametrization, metrics"""
    layers = tf.keras.layers
    encoder = tf.keras.Sequential([layers.Conv2D(32, 3, 2, "same", activation="relu"),
                                   layers.Conv2D(64, 3, 2, "same", activation="relu"),
                                   layers.Flatten(), layers.Dense(32)])
    decoder = tf.keras.Sequential([layers.Dense(8 * 8 * 64, activation="relu"),
                                   layers.Reshape((8, 8, 64)),
                                   layers.Conv2DTranspose(64, 3, 2, "same", activation="relu"),
                                   layers.Conv2DTranspose(32, 3, 2, "same", activation="relu"),
                                   layers.Conv2DTranspose(1, 3, 1, "same")])

    class Vae(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = encoder, decoder
            self.tracker = tf.keras.metrics.Mean("loss")

        def train_step(self, data):
            with tf.GradientTape() as tape:
                mean, spread = tf.split(self.encoder(data), 2, axis=-1)
                z = mean + tf.exp(0.5 * spread) * tf.random.normal(tf.shape(mean))
                shown = self.decoder(z)
                rebuilt = tf.reduce_mean(tf.reduce_sum(
                    tf.nn.sigmoid_cross_entropy_with_logits(labels=data, logits=shown), [1, 2, 3]))
                divergence = -0.5 * (1 + spread - tf.square(mean) - tf.exp(spread))
                loss = rebuilt + tf.reduce_mean(tf.reduce_sum(divergence, 1))
            variables = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            self.tracker.update_state(loss)
            return {"loss": self.tracker.result()}
    encoder.build((None, 32, 32, 1)), decoder.build((None, 16))
    model = Vae()
    model.compile(tf.keras.optimizers.Adam())
    model.optimizer.build(model.trainable_variables)
    return Program(model.train_step, [np.clip(images(32, 32, 32, 1), 0, 1)], 32)


@program
def gan(tf):
    """A GAN: two optimizers and two tapes in one function"""
    layers = tf.keras.layers
    generator = tf.keras.Sequential([
        layers.Dense(8 * 8 * 64, use_bias=False), layers.BatchNormalization(), layers.LeakyReLU(),
        layers.Reshape((8, 8, 64)),
        layers.Conv2DTranspose(32, 5, 2, "same", use_bias=False), layers.BatchNormalization(),
        layers.LeakyReLU(), layers.Conv2DTranspose(1, 5, 2, "same", activation="tanh")])
    critic = tf.keras.Sequential([
        layers.Conv2D(32, 5, 2, "same"), layers.LeakyReLU(), layers.Dropout(0.3),
        layers.Conv2D(64, 5, 2, "same"), layers.LeakyReLU(), layers.Dropout(0.3),
        layers.Flatten(), layers.Dense(1)])
    generator.build((None, 50)), critic.build((None, 32, 32, 1))
    xent = tf.keras.losses.BinaryCrossentropy(from_logits=True)
    first, second = tf.keras.optimizers.Adam(1e-4), tf.keras.optimizers.Adam(1e-4)
    first.build(generator.trainable_variables), second.build(critic.trainable_variables)

    def step(x):
        noise = tf.random.normal([tf.shape(x)[0], 50])
        with tf.GradientTape() as one, tf.GradientTape() as two:
            made = generator(noise, training=True)
            real, fake = critic(x, training=True), critic(made, training=True)
            wanted = xent(tf.ones_like(fake), fake)
            judged = xent(tf.ones_like(real), real) + xent(tf.zeros_like(fake), fake)
        first.apply_gradients(zip(one.gradient(wanted, generator.trainable_variables),
                                  generator.trainable_variables))
        second.apply_gradients(zip(two.gradient(judged, critic.trainable_variables),
                                   critic.trainable_variables))
        return wanted, judged
    return Program(step, [images(32, 32, 32, 1)], 32)


@program
def wgan_gradient_penalty(tf):
    """A critic with a gradient penalty: a gradient of a gradient"""
    layers = tf.keras.layers
    critic = tf.keras.Sequential([layers.Conv2D(32, 5, 2, "same"), layers.LeakyReLU(),
                                  layers.Conv2D(64, 5, 2, "same"), layers.LeakyReLU(),
                                  layers.Flatten(), layers.Dense(1)])
    critic.build((None, 32, 32, 3))

    def loss_of(real, fake):
        mix = tf.random.uniform([tf.shape(real)[0], 1, 1, 1])
        between = real + mix * (fake - real)
        with tf.GradientTape() as tape:
            tape.watch(between)
            judged = critic(between)
        slope = tape.gradient(judged, between)
        norm = tf.sqrt(tf.reduce_sum(tf.square(slope), [1, 2, 3]) + 1e-12)
        return (tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real)) +
                10.0 * tf.reduce_mean(tf.square(norm - 1)))
    return Program(gradient_step(tf, critic, tf.keras.optimizers.Adam(), loss_of),
                   [images(16, 32, 32, 3), images(16, 32, 32, 3, seed=3)], 16)


@program
def diffusion(tf):
    """A denoising net with attention at a low resolution, time embedding, SGD with EMA"""
    layers = tf.keras.layers
    x = entry = layers.Input((32, 32, 3))
    time = layers.Input(())
    angle = time[:, None] * tf.exp(tf.linspace(0.0, -4.0, 16))[None]
    emb = layers.Dense(32, activation="swish")(tf.concat([tf.sin(angle), tf.cos(angle)], -1))
    x = a = layers.Conv2D(32, 3, padding="same")(x)
    x = layers.GroupNormalization(8)(x + layers.Dense(32)(emb)[:, None, None])
    x = layers.Conv2D(64, 3, 2, "same", activation="swish")(x)
    y = layers.Reshape((256, 64))(x)
    y = layers.MultiHeadAttention(4, 16)(y, y)
    x = x + layers.Reshape((16, 16, 64))(y)
    x = tf.image.resize(x, [32, 32], "nearest")
    x = layers.Conv2D(3, 3, padding="same")(layers.Concatenate()([x, a]))
    model = tf.keras.Model([entry, time], x)

    def loss_of(clean, when):
        noise = tf.random.normal(tf.shape(clean))
        level = tf.reshape(when, [-1, 1, 1, 1])
        return tf.reduce_mean(tf.square(
            noise - model([tf.sqrt(1 - level) * clean + tf.sqrt(level) * noise, when])))
    return Program(gradient_step(tf, model, tf.keras.optimizers.SGD(
        0.01, momentum=0.9, nesterov=True, use_ema=True, ema_overwrite_frequency=10), loss_of),
        [images(12, 32, 32, 3), np.linspace(0.1, 0.9, 12).astype(np.float32)], 12)


# ---- Sequences.

@program
def transformer(tf):
    """Encoder and decoder with MultiHeadAttention, padding and causal masks, clipped by norm"""
    layers = tf.keras.layers
    units, words = 64, 500

    def block(x, seen, causal):
        y = layers.MultiHeadAttention(4, units // 4, dropout=0.1)(x, seen, use_causal_mask=causal)
        x = layers.LayerNormalization()(layers.Add()([x, y]))
        return x
    source, target = layers.Input((None,), dtype="int32"), layers.Input((None,), dtype="int32")
    x = layers.Embedding(words, units, mask_zero=True)(source)
    x = block(x, x, False)
    x = layers.LayerNormalization()(x + layers.Dense(units)(layers.Dense(4 * units, "relu")(x)))
    y = layers.Embedding(words, units, mask_zero=True)(target)
    y = block(y, y, True)
    y = block(y, x, False)
    y = layers.LayerNormalization()(y + layers.Dense(units)(layers.Dense(4 * units, "relu")(y)))
    model = tf.keras.Model([source, target], layers.Dense(words)(y))
    xent = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def loss_of(one, two, labels):
        losses = xent(labels, model([one, two], training=True))
        mask = tf.cast(labels != 0, tf.float32)
        return tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)
    return Program(gradient_step(tf, model, tf.keras.optimizers.Adam(
        tf.keras.optimizers.schedules.CosineDecay(1e-3, 1000), global_clipnorm=1.0), loss_of),
        [integers(words, 8, 64), integers(words, 8, 48), integers(words, 8, 48)], 8)


@program
def gru_seq2seq(tf):
    """Two GRU layers, encoder to decoder, dot attention (Keras's GRU of cuDNN's form)"""
    layers = tf.keras.layers
    words, units = 400, 96
    source, target = layers.Input((40,), dtype="int32"), layers.Input((30,), dtype="int32")
    seen, state = layers.GRU(units, return_sequences=True, return_state=True)(
        layers.Embedding(words, units)(source))
    y = layers.GRU(units, return_sequences=True)(
        layers.Embedding(words, units)(target), initial_state=state)
    y = layers.Concatenate()([y, layers.Attention()([y, seen])])
    model = tf.keras.Model([source, target], layers.Dense(words)(y))
    xent = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return Program(gradient_step(
        tf, model, tf.keras.optimizers.Adam(),
        lambda one, two, labels: xent(labels, model([one, two], training=True))),
        [integers(words, 32, 40), integers(words, 32, 30), integers(words, 32, 30)], 32)


@program
def bidirectional_lstm(tf):
    """Two bidirectional LSTM layers with masks, by model.fit's own step, batch known"""
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        layers.Embedding(300, 64, mask_zero=True),
        layers.Bidirectional(layers.LSTM(64, return_sequences=True)),
        layers.Bidirectional(layers.LSTM(64)), layers.Dense(10)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])
    fed = [np.maximum(integers(300, 32, 40), 1), integers(10, 32)]
    return Program(fitted(tf, model, fed), fed)


@program
def conv_lstm(tf):
    """ConvLSTM2D, which unrolls nothing, and a stateful readout, Adadelta"""
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        layers.ConvLSTM2D(16, 3, padding="same", return_sequences=True),
        layers.BatchNormalization(), layers.Conv3D(1, 3, padding="same")])
    model.build((None, 8, 24, 24, 1))
    return Program(gradient_step(
        tf, model, tf.keras.optimizers.Adadelta(),
        lambda x: tf.reduce_mean(tf.square(model(x, training=True) - x))),
        [images(8, 8, 24, 24, 1)], 8)


@program
def custom_cell(tf):
    """keras.layers.RNN with a cell of one's own, dropout within, and a TimeDistributed head"""
    layers = tf.keras.layers

    class Cell(layers.Layer):
        def __init__(self, units):
            super().__init__()
            self.units, self.state_size = units, [units, units]

        def build(self, shape):
            self.kernel = self.add_weight("k", (shape[-1] + self.units, 2 * self.units))
            super().build(shape)

        def call(self, x, states):
            h, trace = states
            gate, value = tf.split(tf.concat([x, h], -1) @ self.kernel, 2, -1)
            gate = tf.sigmoid(gate)
            new = gate * h + (1 - gate) * tf.tanh(value)
            return new, [new, 0.9 * trace + new]
    model = tf.keras.Sequential([layers.RNN(Cell(96), return_sequences=True),
                                 layers.TimeDistributed(layers.Dense(64, "relu")),
                                 layers.Dense(20)])
    model.build((None, 50, 32))
    return Program(classifier(tf, model, tf.keras.optimizers.Adam()),
                   [images(32, 50, 32), integers(20, 32, 50)], 32)


@program
def own_while_loop(tf):
    """A model whose depth is a tf.while_loop over a stack of weights"""
    weights = tf.Variable(tf.random.normal([12, 128, 128]) * 0.05)

    def loss_of(x, y):
        _, out = tf.while_loop(
            lambda i, h: i < 12,
            lambda i, h: (i + 1, h + tf.nn.gelu(tf.matmul(h, weights[i]))),
            (tf.constant(0), x))
        return tf.reduce_mean(tf.square(out - y))
    return Program(gradient_step(tf, None, tf.keras.optimizers.SGD(0.1), loss_of, [weights]),
                   [images(512, 128), images(512, 128, seed=5)], 512)


@program
def autograph_loop(tf):
    """for t in tf.range(...) that autograph makes a While of, TensorArrays written and read"""
    kernel = tf.Variable(tf.random.normal([160, 128]) * 0.05)
    out = tf.Variable(tf.random.normal([128, 32]) * 0.05)

    def loss_of(x, y):
        state = tf.zeros([tf.shape(x)[0], 128])
        states = tf.TensorArray(tf.float32, size=tf.shape(x)[1])
        steps = tf.transpose(x, [1, 0, 2])
        for t in tf.range(tf.shape(x)[1]):
            state = tf.tanh(tf.concat([steps[t], state], 1) @ kernel)
            states = states.write(t, state)
        logits = tf.tensordot(tf.transpose(states.stack(), [1, 0, 2]), out, 1)
        return tf.reduce_mean(tf.square(logits - y))
    loss_of = tf.autograph.to_graph(loss_of)
    return Program(gradient_step(tf, None, tf.keras.optimizers.Adam(), loss_of, [kernel, out]),
                   [images(64, 40, 32), images(64, 40, 32, seed=5)], 64)


@program
def scanned(tf):
    """tf.scan over time, and tf.map_fn over the batch"""
    kernel = tf.Variable(tf.random.normal([96, 96]) * 0.05)
    filters = tf.Variable(tf.random.normal([96, 96]) * 0.05)

    def loss_of(x):
        states = tf.scan(lambda h, now: tf.tanh(h @ kernel + now), tf.transpose(x, [1, 0, 2]))
        mapped = tf.map_fn(lambda one: tf.nn.relu(one @ filters), tf.transpose(states, [1, 0, 2]))
        return tf.reduce_mean(tf.square(mapped))
    return Program(gradient_step(tf, None, tf.keras.optimizers.Adam(), loss_of,
                                 [kernel, filters]), [images(32, 40, 96)], 32)


@program
def vectorized_map(tf):
    """tf.vectorized_map over the batch, and batch_jacobian in the loss"""
    kernel = tf.Variable(tf.random.normal([64, 256]) * 0.05)
    second = tf.Variable(tf.random.normal([256, 8]) * 0.05)

    def loss_of(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            h = tf.tanh(x @ kernel) @ second
        jacobian = tape.batch_jacobian(h, x)
        outer = tf.vectorized_map(lambda one: tf.matmul(one, one, transpose_b=True), jacobian)
        return tf.reduce_mean(tf.square(outer)) + tf.reduce_mean(tf.square(h))
    return Program(gradient_step(tf, None, tf.keras.optimizers.Adam(), loss_of, [kernel, second]),
                   [images(128, 64)], 128)


@program
def speech_ctc(tf):
    """Spectrograms by tf.signal, a GRU, CTC loss"""
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Dense(64, "relu"),
                                 layers.Bidirectional(layers.GRU(48, return_sequences=True)),
                                 layers.Dense(29)])
    model.build((None, 61, 129))

    def loss_of(wave, labels):
        spectrum = tf.abs(tf.signal.stft(wave, 256, 128))
        mel = tf.math.log(spectrum + 1e-3)
        logits = model(mel, training=True)
        frames = tf.fill([tf.shape(wave)[0]], tf.shape(logits)[1])
        lengths = tf.fill([tf.shape(wave)[0]], 10)
        return tf.reduce_mean(tf.nn.ctc_loss(labels, logits, lengths, frames,
                                             logits_time_major=False, blank_index=28))
    return Program(gradient_step(tf, model, tf.keras.optimizers.Adam(), loss_of),
                   [images(16, 7936), integers(28, 16, 10)], 16)


@program
def fourier_mixer(tf):
    """FNet: fft2d in place of attention, einsum feed-forward, inverse real FFT in the loss"""
    layers = tf.keras.layers
    first = tf.Variable(tf.random.normal([64, 256]) * 0.1)
    second = tf.Variable(tf.random.normal([256, 64]) * 0.1)
    norm = layers.LayerNormalization()
    norm.build((None, 64, 64))

    def loss_of(x):
        y = tf.math.real(tf.signal.fft2d(tf.cast(x, tf.complex64)))
        y = norm(x + y)
        h = tf.nn.gelu(tf.einsum("btd,dh->bth", y, first))
        y = y + tf.einsum("bth,hd->btd", h, second)
        wave = tf.signal.irfft(tf.signal.rfft(y) * tf.complex(0.5, 0.1))
        return tf.reduce_mean(tf.square(wave))
    return Program(gradient_step(tf, None, tf.keras.optimizers.Adam(), loss_of,
                                 [first, second] + norm.trainable_variables),
                   [images(32, 64, 64)], 32)


# ---- Tables and graphs.

@program
def recommender(tf):
    """Ragged ids, safe_embedding_lookup_sparse, a wide part with Ftrl, a deep one with Adagrad"""
    table = tf.Variable(tf.random.normal([2000, 64]) * 0.05)
    wide = tf.Variable(tf.zeros([2000, 1]))
    deep = [tf.Variable(tf.random.normal(shape) * 0.05)
            for shape in ([64, 512], [512, 512], [512, 1])]
    ftrl, adagrad = tf.keras.optimizers.Ftrl(0.1), tf.keras.optimizers.Adagrad(0.1)
    ftrl.build([wide]), adagrad.build([table] + deep)

    def step(ids, labels):
        sparse = tf.sparse.from_dense(ids)
        with tf.GradientTape() as tape:
            x = tf.nn.safe_embedding_lookup_sparse(table, sparse, combiner="mean")
            y = tf.nn.safe_embedding_lookup_sparse(wide, sparse, combiner="sum")
            for kernel in deep[:-1]:
                x = tf.nn.relu(x @ kernel)
            logits = x @ deep[-1] + y
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
                labels=tf.cast(labels[:, None], tf.float32), logits=logits))
        gradients = tape.gradient(loss, [wide, table] + deep)
        ftrl.apply_gradients([(gradients[0], wide)])
        adagrad.apply_gradients(zip(gradients[1:], [table] + deep))
        return loss
    return Program(step, [integers(2000, 1024, 12), integers(2, 1024)], 1024)


@program
def graph_net(tf):
    """Message passing: gather, unsorted and sorted segment ops, a GRU cell's update"""
    layers = tf.keras.layers
    message, cell = layers.Dense(64, "relu"), layers.GRUCell(64)
    readout = layers.Dense(10)
    message.build((None, 128)), cell.build((None, 64)), readout.build((None, 64))
    variables = (message.trainable_variables + cell.trainable_variables +
                 readout.trainable_variables)

    def loss_of(nodes, edges, owner, labels):
        h = nodes
        for _ in range(3):
            pair = tf.concat([tf.gather(h, edges[:, 0]), tf.gather(h, edges[:, 1])], -1)
            summed = tf.math.unsorted_segment_sum(message(pair), edges[:, 1], tf.shape(h)[0])
            h, _ = cell(summed, [h])
        pooled = tf.math.unsorted_segment_mean(h, owner, 16)
        worst = tf.math.unsorted_segment_max(h, owner, 16)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=readout(pooled + worst)))
    edges = integers(512, 4096, 2)
    return Program(gradient_step(tf, None, tf.keras.optimizers.Adam(), loss_of, variables),
                   [images(512, 64), edges, np.sort(integers(16, 512)), integers(10, 16)])


@program
def mixture_of_experts(tf):
    """Routing by top_k, gather_nd and scatter_nd to experts in one einsum, AdamW"""
    gate = tf.Variable(tf.random.normal([64, 4]) * 0.1)
    up = tf.Variable(tf.random.normal([4, 64, 256]) * 0.1)
    down = tf.Variable(tf.random.normal([4, 256, 64]) * 0.1)
    capacity = 256

    def loss_of(x):
        probabilities = tf.nn.softmax(x @ gate)
        values, experts = tf.math.top_k(probabilities, 1)
        one = tf.one_hot(experts[:, 0], 4, dtype=tf.int32)
        place = tf.reduce_sum(tf.cumsum(one, exclusive=True) * one, -1)
        index = tf.stack([experts[:, 0], tf.minimum(place, capacity - 1)], -1)
        routed = tf.scatter_nd(index, x, [4, capacity, 64])
        h = tf.nn.gelu(tf.einsum("ecd,edh->ech", routed, up))
        back = tf.gather_nd(tf.einsum("ech,ehd->ecd", h, down), index)
        return tf.reduce_mean(tf.square(x - values * back))
    return Program(gradient_step(tf, None, tf.keras.optimizers.AdamW(), loss_of, [gate, up, down]),
                   [images(512, 64)], 512)


# ---- Gradients and control flow.

@program
def recomputed(tf):
    """tf.recompute_grad: gradient checkpointing of three blocks"""
    kernels = [[tf.Variable(tf.random.normal([64, 64]) * 0.1) for _ in range(4)] for _ in range(3)]

    def block(weights):
        def run(x):
            for kernel in weights:
                x = x + tf.nn.gelu(x @ kernel)
            return x
        return tf.recompute_grad(run)
    blocks = [block(weights) for weights in kernels]

    def loss_of(x):
        for run in blocks:
            x = run(x)
        return tf.reduce_mean(tf.square(x))
    return Program(gradient_step(tf, None, tf.keras.optimizers.Adam(), loss_of,
                                 [kernel for weights in kernels for kernel in weights]),
                   [images(1024, 64)], 1024)


@program
def own_gradients(tf):
    """tf.custom_gradient (straight-through quantizing, a fused activation), nested functions"""
    kernels = [tf.Variable(tf.random.normal([128, 128]) * 0.1) for _ in range(4)]

    @tf.custom_gradient
    def quantized(x):
        return tf.round(x * 8) / 8, lambda dy: tf.clip_by_value(dy, -1.0, 1.0)

    @tf.custom_gradient
    def swish(x):
        s = tf.sigmoid(x)
        return x * s, lambda dy: dy * (s + x * s * (1 - s))

    @tf.function
    def layer(x, kernel):
        return swish(tf.matmul(x, quantized(kernel)))

    def loss_of(x, y):
        for kernel in kernels:
            x = layer(x, kernel)
        return tf.reduce_mean(tf.square(x - y))
    return Program(gradient_step(tf, None, tf.keras.optimizers.SGD(0.1), loss_of, kernels),
                   [images(1024, 128), images(1024, 128, seed=4)], 1024)


@program
def conditional_depth(tf):
    """tf.cond and tf.switch_case in the model, stochastic depth"""
    kernels = [tf.Variable(tf.random.normal([3, 3, 32, 32]) * 0.1) for _ in range(4)]
    first = tf.Variable(tf.random.normal([3, 3, 3, 32]) * 0.1)

    def loss_of(x):
        x = tf.nn.conv2d(x, first, 1, "SAME")
        for kernel in kernels:
            x = tf.cond(tf.random.uniform([]) < 0.9,
                        lambda x=x, kernel=kernel: x + tf.nn.relu(
                            tf.nn.conv2d(x, kernel, 1, "SAME")), lambda x=x: x)
        scale = tf.switch_case(tf.random.uniform([], 0, 3, tf.int32),
                               [lambda: x * 0.5, lambda: tf.tanh(x), lambda: x])
        return tf.reduce_mean(tf.square(scale))
    return Program(gradient_step(tf, None, tf.keras.optimizers.Adam(), loss_of,
                                 [first] + kernels), [images(16, 32, 32, 3)], 16)


@program
def einsum_attention(tf):
    """Einsums of four dimensions, relative positions, local attention by padding and slices"""
    shapes = {"q": [64, 4, 16], "k": [64, 4, 16], "v": [64, 4, 16], "o": [4, 16, 64]}
    v = {name: tf.Variable(tf.random.normal(shape) * 0.1) for name, shape in shapes.items()}
    bias = tf.Variable(tf.zeros([4, 255]))

    def loss_of(x):
        q, k, val = (tf.einsum("btd,dhk->bhtk", x, v[name]) for name in "qkv")
        scores = tf.einsum("bhqd,bhkd->bhqk", q, k) / 4.0
        length = tf.shape(x)[1]
        position = tf.range(length)[:, None] - tf.range(length)[None] + length - 1
        scores += tf.gather(bias, position, axis=1)[None]
        mask = tf.linalg.band_part(tf.ones([length, length]), 32, 0)
        weights = tf.nn.softmax(scores - 1e9 * (1 - mask))
        y = tf.einsum("bhqk,bhkd->bqhd", weights, val)
        y = x + tf.einsum("bqhd,hdo->bqo", y, v["o"])
        return tf.reduce_mean(tf.square(y[:, 1:] - y[:, :-1]))
    return Program(gradient_step(tf, None, tf.keras.optimizers.Adam(), loss_of,
                                 list(v.values()) + [bias]), [images(8, 128, 64)], 8)


@program
def linear_algebra(tf):
    """Gaussian process: Cholesky, triangular solves, log determinant"""
    scale = tf.Variable(tf.ones([16]))
    noise = tf.Variable(0.5)

    def loss_of(x, y):
        z = x * scale
        square = tf.reduce_sum(tf.square(z[:, None] - z[None]), -1)
        kernel = tf.exp(-0.5 * square) + tf.square(noise) * tf.eye(tf.shape(x)[0])
        lower = tf.linalg.cholesky(kernel)
        alpha = tf.linalg.cholesky_solve(lower, y[:, None])
        return (0.5 * tf.reduce_sum(y[:, None] * alpha) +
                tf.reduce_sum(tf.math.log(tf.linalg.diag_part(lower))))
    return Program(gradient_step(tf, None, tf.keras.optimizers.Adam(), loss_of, [scale, noise]),
                   [images(300, 16), images(300)], 300)


@program
def contrastive(tf):
    """SimCLR: two views, a similarity matrix over the batch, LARS-like scaling by norms"""
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Conv2D(32, 3, 2, "same", use_bias=False),
                                 layers.BatchNormalization(), layers.ReLU(),
                                 layers.Conv2D(64, 3, 2, "same"), layers.ReLU(),
                                 layers.GlobalAveragePooling2D(), layers.Dense(32)])
    model.build((None, 32, 32, 3))
    variables = model.trainable_variables

    def step(one, two):
        with tf.GradientTape() as tape:
            z = tf.math.l2_normalize(model(tf.concat([one, two], 0), training=True), -1)
            logits = tf.matmul(z, z, transpose_b=True) / 0.5
            count = tf.shape(one)[0]
            logits -= 1e9 * tf.eye(2 * count)
            labels = tf.concat([tf.range(count) + count, tf.range(count)], 0)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=labels, logits=logits))
        for variable, gradient in zip(variables, tape.gradient(loss, variables)):
            trust = tf.math.divide_no_nan(tf.norm(variable), tf.norm(gradient))
            variable.assign_sub(0.01 * trust * gradient)
        return loss
    return Program(step, [images(32, 32, 32, 3), images(32, 32, 32, 3, seed=7)], 32)


@program
def distilled_moving_average(tf):
    """A student, a teacher that is the moving average of its weights, no gradient through it"""
    layers = tf.keras.layers

    def net():
        made = tf.keras.Sequential([layers.Conv2D(24, 3, padding="same", activation="relu"),
                                    layers.Conv2D(24, 3, 2, "same", activation="relu"),
                                    layers.Flatten(), layers.Dense(16)])
        made.build((None, 24, 24, 3))
        return made
    student, teacher = net(), net()
    optimizer = tf.keras.optimizers.Adam()
    optimizer.build(student.trainable_variables)

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.keras.losses.KLDivergence()(
                tf.nn.softmax(teacher(x)), tf.nn.softmax(student(tf.image.flip_left_right(x))))
        optimizer.apply_gradients(zip(tape.gradient(loss, student.trainable_variables),
                                      student.trainable_variables))
        for kept, now in zip(teacher.variables, student.variables):
            kept.assign(0.99 * kept + 0.01 * now)
        return loss
    return Program(step, [images(32, 24, 24, 3)], 32)
