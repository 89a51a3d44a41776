"""The graphs of shape_functions.py: ops that work together, and training graphs of many kinds.

A case is a function with @chain or @model, which builds a graph in graph mode. A model is to be
trained: its gradients and an optimizer are part of it. Control flow is that of version 1 unless the
case changes it.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
raw = tf.raw_ops
keras = tf.keras

CASES = {}


def _register(kind):
    def decorator(function):
        CASES["%s/%s" % (kind, function.__name__)] = function
        return function
    return decorator


chain, model = _register("chain"), _register("model")


def _feed(*shape, dtype=tf.float32):
    return v1.placeholder(dtype, None if shape == (...,) else shape)


def _xent(logits):
    labels = _feed(logits.shape[0], dtype=tf.int32)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=logits))


def _variable(name, *shape):
    return v1.get_variable(name, shape)


# ---- Chains.

@chain
def tensor_arrays():
    for element in ([3, 4], [None, 4], None):
        for same in (True, False):
            array = tf.TensorArray(tf.float32, 5, element_shape=element, infer_shape=same)
            array = array.write(0, _feed(3, 4)).scatter([1, 2], _feed(2, 3, 4))
            array.read(1)
            array.gather([0, 1, 2])
            array.stack()
            array.size()
            array.grad("g").stack()
    parts = tf.TensorArray(tf.float32, 2, infer_shape=False).split(_feed(6, 2), [2, 4])
    parts.concat()
    _, _, out = tf.while_loop(
        lambda i, x, a: i < 4, lambda i, x, a: (i + 1, x * 2, a.write(i, x)),
        (0, _feed(2, 3), tf.TensorArray(tf.float32, 4)))
    tf.gradients(out.stack(), [out.flow])


@chain
def tensor_lists():
    for shape in ([3], [-1], tf.constant(-1), _feed(1, dtype=tf.int32)):
        empty = raw.EmptyTensorList(element_shape=shape, max_num_elements=-1,
                                    element_dtype=tf.float32)
        full = raw.TensorListPushBack(input_handle=empty, tensor=_feed(3))
        raw.TensorListPopBack(input_handle=full, element_shape=shape, element_dtype=tf.float32)
        raw.TensorListElementShape(input_handle=full, shape_type=tf.int32)
        reserved = raw.TensorListReserve(element_shape=shape, num_elements=4,
                                         element_dtype=tf.float32)
        changed = raw.TensorListSetItem(input_handle=reserved, index=1, item=_feed(3))
        for given in (shape, tf.constant(-1)):
            raw.TensorListGetItem(input_handle=changed, index=1, element_shape=given,
                                  element_dtype=tf.float32)
            raw.TensorListGather(input_handle=changed, indices=[0, 1], element_shape=given,
                                 element_dtype=tf.float32)
            for count in (4, -1):
                raw.TensorListStack(input_handle=changed, element_shape=given,
                                    element_dtype=tf.float32, num_elements=count)
    rows = raw.TensorListFromTensor(tensor=_feed(4, 3), element_shape=[3])
    raw.TensorListStack(input_handle=rows, element_shape=tf.constant(-1),
                        element_dtype=tf.float32)
    pieces = raw.TensorListSplit(tensor=_feed(6, 3), element_shape=[-1, 3], lengths=[2, 4])
    raw.TensorListConcatV2(input_handle=pieces, element_shape=[-1, 3], leading_dims=[2, 4],
                           element_dtype=tf.float32)
    raw.TensorListConcat(input_handle=pieces, element_dtype=tf.float32, element_shape=[None, 3])
    raw.TensorListResize(input_handle=rows, size=9)


@chain
def queues_and_accumulators():
    shapes = [[], [3, 4], [None, 2]]
    types = [tf.float32] * 3
    for queue in (v1.FIFOQueue(9, types[:2], shapes[:2]),
                  v1.RandomShuffleQueue(9, 2, types[:2], shapes[:2]),
                  v1.PaddingFIFOQueue(9, types, shapes), v1.FIFOQueue(9, types)):
        queue.dequeue()
        queue.size()
        if queue.shapes[0].rank is not None:
            queue.dequeue_many(5)
            queue.dequeue_up_to(5)
    v1.ConditionalAccumulator(tf.float32, [2, 3]).take_grad(4)
    v1.SparseConditionalAccumulator(tf.float32, [2, 3]).take_grad(4)
    area = v1.FIFOQueue(2, [tf.string])
    v1.WholeFileReader().read(area)
    v1.TFRecordReader().read_up_to(area, 5)


@chain
def iterators():
    images = tf.data.Dataset.from_tensor_slices((tf.zeros([9, 8, 8, 3]), tf.zeros([9], tf.int32)))
    for dataset in (images.batch(4, drop_remainder=True), images.batch(4).repeat(),
                    images.map(lambda x, y: {"x": x[:4], "y": y}).padded_batch(2),
                    images.shuffle(9).prefetch(2), tf.data.Dataset.range(9).window(3)):
        v1.data.make_initializable_iterator(dataset).get_next()
    v1.data.make_one_shot_iterator(images.batch(2)).get_next_as_optional()
    tf.data.experimental.get_single_element(images.batch(9))


@chain
def parsers():
    features = {
        "a": tf.io.FixedLenFeature([2, 3], tf.float32), "b": tf.io.VarLenFeature(tf.int64),
        "c": tf.io.FixedLenSequenceFeature([4], tf.float32, allow_missing=True),
        "d": tf.io.SparseFeature("i", "v", tf.float32, 10),
        "e": tf.io.RaggedFeature(tf.float32)}
    context = {"x": tf.io.FixedLenFeature([3], tf.float32), "y": tf.io.VarLenFeature(tf.int64)}
    lists = {"s": tf.io.FixedLenSequenceFeature([2], tf.float32),
             "t": tf.io.VarLenFeature(tf.string)}
    for strings in (_feed(7, dtype=tf.string), _feed(None, dtype=tf.string)):
        tf.io.parse_example(strings, features)
        tf.io.parse_sequence_example(strings, context, lists)
        tf.io.decode_csv(strings, [[1.], [2]])
        tf.io.decode_raw(strings, tf.float32)
        tf.io.decode_raw(strings, tf.float32, fixed_length=24)
    one = _feed(dtype=tf.string)
    tf.io.parse_single_example(one, {k: features[k] for k in "ab"})
    tf.io.parse_single_sequence_example(one, context, lists)
    raw.ParseExample(serialized=_feed(5, dtype=tf.string), names=[], sparse_keys=["a", "b"],
                     dense_keys=["c", "d"], dense_defaults=[tf.zeros([2]), tf.zeros([0])],
                     sparse_types=[tf.int64, tf.float32], dense_shapes=[[2], [None, 3]])


@chain
def tables():
    keys = _feed(4, None, dtype=tf.string)
    init = v1.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])
    tf.lookup.StaticHashTable(init, -1).lookup(keys)
    tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, [0., 0.]).lookup(keys)
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, 0.)
    table.lookup(keys)
    table.export()
    dense = tf.lookup.experimental.DenseHashTable(
        tf.int64, tf.float32, default_value=tf.zeros([3]), empty_key=-1, deleted_key=-2)
    dense.lookup(_feed(5, dtype=tf.int64))
    dense.export()


@chain
def images():
    one = tf.io.decode_jpeg(_feed(dtype=tf.string), channels=3)
    tf.io.decode_image(_feed(dtype=tf.string), channels=3, expand_animations=False)
    one = tf.image.random_flip_left_right(tf.image.resize(one, [40, 50]))
    one = tf.image.random_crop(one, [32, 32, 3])
    one = tf.image.adjust_hue(tf.image.adjust_saturation(one, .5), .1)
    batch = tf.stack([one, one])
    for method in ("bilinear", "nearest", "bicubic", "area"):
        for size in ([20, 30], _feed(2, dtype=tf.int32), tf.shape(batch)[1:3] * 2):
            resized = v1.image.resize(batch, size, method=method)
            if method != "area":
                tf.gradients(resized, [batch])
    boxes = tf.image.crop_and_resize(batch, _feed(9, 4), _feed(9, dtype=tf.int32), [7, 7])
    tf.gradients(boxes, [batch])
    tf.image.non_max_suppression(_feed(20, 4), _feed(20), 5)
    tf.image.non_max_suppression_padded(_feed(20, 4), _feed(20), 5, pad_to_max_output_size=True)
    tf.image.combined_non_max_suppression(_feed(2, 20, 1, 4), _feed(2, 20, 6), 5, 8)
    v1.image.sample_distorted_bounding_box([8, 8, 3], _feed(1, 2, 4))
    tf.io.encode_jpeg(tf.cast(one, tf.uint8))


@chain
def cells():
    for batch in (4, None):
        x, state = _feed(9, batch, 5), _feed(batch, 6)
        w, peep, bias = _feed(11, 24), _feed(6), _feed(24)
        out = raw.BlockLSTMV2(seq_len_max=tf.constant(9, tf.int64), x=x, cs_prev=state,
                              h_prev=state, w=w, wci=peep, wcf=peep, wco=peep, b=bias)
        raw.BlockLSTMGradV2(
            seq_len_max=tf.constant(9, tf.int64), x=x, cs_prev=state, h_prev=state, w=w, wci=peep,
            wcf=peep, wco=peep, b=bias, i=out.i, cs=out.cs, f=out.f, o=out.o, ci=out.ci, co=out.co,
            h=out.h, cs_grad=out.cs, h_grad=out.h, use_peephole=False)
        gru = raw.GRUBlockCell(x=x[0], h_prev=state, w_ru=_feed(11, 12), w_c=_feed(11, 6),
                               b_ru=_feed(12), b_c=peep)
        raw.GRUBlockCellGrad(x=x[0], h_prev=state, w_ru=_feed(11, 12), w_c=_feed(11, 6),
                             b_ru=_feed(12), b_c=peep, r=gru.r, u=gru.u, c=gru.c, d_h=gru.h)
        hidden = _feed(4, batch, 6)
        for mode in ("lstm", "gru", "rnn_tanh"):
            for direction in ("unidirectional", "bidirectional"):
                raw.CudnnRNNV2(input=x, input_h=hidden, input_c=hidden, params=_feed(900),
                               rnn_mode=mode, direction=direction)
                raw.CudnnRNNV3(input=x, input_h=hidden, input_c=_feed(4, batch, 8),
                               params=_feed(900), sequence_lengths=_feed(batch, dtype=tf.int32),
                               rnn_mode=mode, direction=direction)


@chain
def data_formats():
    """What Grappler's layout pass puts before shapes, paddings and axes: TensorFlow evaluates it."""
    for src, dst in (("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NDHWC", "NCDHW"), ("NHWC", "CWHN")):
        formats = {"src_format": src, "dst_format": dst}
        rank = len(src)
        for size in (rank, rank - 2):
            items = [10 + i for i in range(size)]
            for dtype in (tf.int32, tf.int64):
                raw.Fill(dims=raw.DataFormatVecPermute(x=tf.constant(items, dtype), **formats),
                         value=0.)
            pairs = raw.DataFormatVecPermute(x=tf.constant([[i, i + 1] for i in items]), **formats)
            raw.Fill(dims=tf.reshape(pairs, [-1])[:4], value=0.)
            raw.Pad(input=_feed(*items), paddings=pairs)
        for axis in range(-rank, rank):
            raw.Sum(input=_feed(*range(10, 10 + rank)),
                    axis=raw.DataFormatDimMap(x=tf.constant(axis), **formats))


@chain
def sparse_tensors():
    sparse = tf.SparseTensor(_feed(None, 2, dtype=tf.int64), _feed(None), [5, 6])
    tf.sparse.sparse_dense_matmul(sparse, _feed(6, 7))
    tf.sparse.to_dense(sparse)
    tf.sparse.reshape(sparse, [3, 10])
    tf.sparse.concat(0, [sparse, sparse])
    tf.sparse.split(sp_input=sparse, num_split=2, axis=1)
    tf.sparse.slice(sparse, [0, 0], [2, 2])
    tf.sparse.reduce_sum(sparse, 1)
    tf.sparse.fill_empty_rows(sparse, 0.)
    tf.sparse.add(sparse, sparse)
    tf.sparse.softmax(sparse)
    tf.sparse.to_dense(tf.sets.intersection(_feed(3, 4, dtype=tf.int64),
                                            _feed(3, 5, dtype=tf.int64)))
    table = _variable("table", 100, 8)
    ids = tf.SparseTensor(_feed(None, 2, dtype=tf.int64), _feed(None, dtype=tf.int64), [5, 6])
    tf.gradients(v1.nn.embedding_lookup_sparse(table, ids, None, combiner="mean"), [table])
    ragged = tf.RaggedTensor.from_row_splits(_feed(None, 3), _feed(5, dtype=tf.int64))
    ragged.to_tensor()
    tf.reduce_sum(ragged, 1)
    tf.ragged.range(_feed(4, dtype=tf.int32))


@chain
def collectives():
    from tensorflow.python.ops import collective_ops
    x = _feed(4, 5)
    collective_ops.all_reduce(x, 2, 1, 1, "Add", "Id")
    collective_ops.broadcast_send(x, [4, 5], tf.float32, 2, 1, 2)
    collective_ops.broadcast_recv([4, 5], tf.float32, 2, 1, 3)
    collective_ops.all_gather_v2(x, 2, 1, 4)
    raw.NcclAllReduce(input=x, reduction="sum", num_devices=2, shared_name="x")


@chain
def random_numbers():
    for shape in ([2, 3], _feed(2, dtype=tf.int32), tf.shape(_feed(None, 5))):
        tf.random.normal(shape)
        tf.random.uniform(shape, maxval=9, dtype=tf.int32)
        tf.random.truncated_normal(shape)
        tf.random.gamma(shape, [1., 2.])
        tf.random.poisson(shape, 2.)
        for function in (tf.random.stateless_normal, tf.random.stateless_truncated_normal,
                         tf.random.stateless_uniform):
            function(shape, [1, 2])
        tf.random.stateless_gamma(shape, [1, 2], 2.)
    tf.random.categorical(_feed(None, 7), 3)
    tf.random.shuffle(_feed(None, 7))


# ---- Models.

def _optimizers():
    train = v1.train
    return (train.GradientDescentOptimizer(.1), train.MomentumOptimizer(.1, .9, use_nesterov=True),
            train.AdamOptimizer(), train.AdagradOptimizer(.1), train.AdadeltaOptimizer(),
            train.AdagradDAOptimizer(.1, v1.train.get_or_create_global_step()),
            train.FtrlOptimizer(.1), train.ProximalAdagradOptimizer(.1),
            train.ProximalGradientDescentOptimizer(.1), train.RMSPropOptimizer(.1),
            train.RMSPropOptimizer(.1, centered=True))


def _train(loss, optimizer=None):
    (optimizer or v1.train.MomentumOptimizer(.1, .9)).minimize(loss)


@model
def all_optimizers():
    for resource in (False, True):
        with v1.variable_scope("r" if resource else "v", use_resource=resource):
            w, table = _variable("w", 30, 10), _variable("t", 50, 30)
            rows = tf.nn.embedding_lookup(table, _feed(None, dtype=tf.int32))
            loss = tf.reduce_mean(tf.square(rows @ w))
            for optimizer in _optimizers():
                _train(loss, optimizer)


@model
def keras_optimizers():
    w = tf.Variable(tf.zeros([20, 10]))
    loss = tf.reduce_sum(tf.square(_feed(None, 20) @ w))
    for optimizer in (keras.optimizers.legacy.Adam(amsgrad=True), keras.optimizers.legacy.Nadam(),
                      keras.optimizers.legacy.Adamax(), keras.optimizers.legacy.Ftrl(),
                      keras.optimizers.legacy.SGD(momentum=.9)):
        optimizer.get_updates(loss, [w])


@model
def mobilenet_depthwise():
    keras.backend.set_learning_phase(1)
    net = keras.applications.MobileNet(weights=None, input_tensor=_feed(None, 64, 64, 3),
                                       classes=10, alpha=.25)
    _train(_xent(net.output))


@model
def vgg_with_batch():
    net = keras.applications.VGG16(weights=None, input_tensor=_feed(8, 32, 32, 3), classes=10)
    _train(_xent(net.output))


def _layers(x, *layers):
    for layer in layers:
        x = layer(x)
    return x


@model
def dcgan_transposed():
    layers = keras.layers
    z = _feed(16, 100)
    image = _layers(z, layers.Dense(4 * 4 * 32), layers.Reshape([4, 4, 32]),
                    layers.Conv2DTranspose(16, 5, 2, "same"), layers.LeakyReLU(),
                    layers.Conv2DTranspose(8, 4, 3, "valid"), layers.ReLU(),
                    layers.Conv2DTranspose(3, 5, 2, "same", activation="tanh"))
    score = _layers(image, layers.Conv2D(8, 5, 2), layers.LeakyReLU(), layers.Flatten(),
                    layers.Dense(1))
    _train(tf.reduce_mean(tf.nn.softplus(-score)), v1.train.AdamOptimizer())


@model
def wavenet_dilated():
    x = _feed(4, 256, 8)
    for i in range(6):
        w = _variable("w%d" % i, 2, 8, 16)
        both = tf.nn.conv1d(x, w, 1, "SAME", dilations=2 ** i)
        gate, value = tf.split(both, 2, -1)
        x += tf.tanh(value) * tf.sigmoid(gate)
    padded = tf.pad(x, [[0, 0], [3, 0], [0, 0]])
    x = tf.nn.conv1d(padded, _variable("last", 4, 8, 10), 2, "VALID")
    _train(_xent(tf.reduce_mean(x, 1)))


@model
def volumes():
    layers = keras.layers
    x = _feed(None, 16, 24, 24, 2)
    down = _layers(x, layers.Conv3D(8, 3, padding="same"), layers.MaxPool3D(2))
    down = _layers(down, layers.Conv3D(8, 3, padding="same"), layers.AveragePooling3D(2, 1))
    up = _layers(down, layers.ZeroPadding3D(((0, 1), (0, 1), (0, 1))),
                 layers.Conv3DTranspose(4, 2, 2), layers.Conv3D(3, 1))
    _train(tf.reduce_mean(tf.square(up)))


@model
def odd_layers():
    x = _feed(6, 33, 31, 8)
    h = tf.nn.local_response_normalization(tf.nn.atrous_conv2d(
        x, _variable("a", 3, 3, 8, 12), 2, "SAME"))
    h = tf.nn.separable_conv2d(h, _variable("d", 3, 3, 12, 2), _variable("p", 1, 1, 24, 8),
                               [1, 2, 2, 1], "VALID")
    h, _ = tf.nn.max_pool_with_argmax(h, 2, 2, "SAME")
    h = tf.nn.avg_pool2d(h, 2, 1, "VALID")
    ratios = [1., 1.4, 1.5, 1.]
    h = raw.FractionalMaxPool(value=h, pooling_ratio=ratios)[0]
    h = raw.FractionalAvgPool(value=h, pooling_ratio=ratios)[0]
    h = tf.nn.depth_to_space(tf.nn.space_to_depth(tf.pad(x, [[0, 0], [0, 1], [0, 1], [0, 0]]), 2),
                             2)[:, :, :, :4] + tf.reduce_mean(h)
    h = tf.nn.dilation2d(h, _variable("m", 3, 3, 4), [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1])
    _train(tf.reduce_sum(tf.square(h)))


def _dynamic(cell, batch=8, time=20):
    out, _ = v1.nn.dynamic_rnn(cell, _feed(batch, time, 12), dtype=tf.float32,
                               sequence_length=_feed(batch, dtype=tf.int32))
    _train(_xent(v1.layers.dense(tf.reduce_mean(out, 1), 10)), v1.train.AdamOptimizer())


@model
def lstm_while_v1():
    _dynamic(v1.nn.rnn_cell.LSTMCell(16))


@model
def gru_while_v1_open_batch():
    _dynamic(v1.nn.rnn_cell.MultiRNNCell([v1.nn.rnn_cell.GRUCell(16) for _ in range(2)]), None)


@model
def lstm_while_v2():
    v1.enable_control_flow_v2()
    _dynamic(v1.nn.rnn_cell.LSTMCell(16))


@model
def keras_lstm():
    x = keras.layers.LSTM(16, return_sequences=True)(_feed(8, 20, 12))
    _train(_xent(keras.layers.Dense(10)(keras.layers.GRU(16)(x))))


@model
def translation_with_attention():
    table = _variable("table", 500, 24)
    source, target = _feed(8, None, dtype=tf.int32), _feed(8, 15, dtype=tf.int32)
    memory, state = v1.nn.dynamic_rnn(v1.nn.rnn_cell.GRUCell(24),
                                      tf.nn.embedding_lookup(table, source), dtype=tf.float32)
    cell, outputs = v1.nn.rnn_cell.GRUCell(24, name="decoder"), []
    for t in range(4):
        scores = tf.einsum("btd,bd->bt", memory, state)
        context = tf.einsum("bt,btd->bd", tf.nn.softmax(scores), memory)
        step = tf.concat([tf.nn.embedding_lookup(table, target[:, t]), context], 1)
        out, state = cell(step, state)
        outputs.append(out)
    logits = tf.tensordot(tf.stack(outputs, 1), tf.transpose(table), 1)
    _train(tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=target[:, 1:5], logits=logits)), v1.train.AdamOptimizer())


@model
def transformer_block():
    x = _feed(None, 32, 64)
    h = keras.layers.MultiHeadAttention(4, 16)(x, x)
    h = keras.layers.LayerNormalization()(x + keras.layers.Dropout(.1)(h, training=True))
    h = keras.layers.Dense(64)(tf.nn.gelu(keras.layers.Dense(128)(h)))
    _train(_xent(keras.layers.Dense(10)(h[:, 0])), v1.train.AdamOptimizer())


@model
def words_sampled_softmax():
    table, w, b = _variable("table", 5000, 32), _variable("w", 5000, 32), _variable("b", 5000)
    h = tf.nn.embedding_lookup(table, _feed(64, dtype=tf.int32))
    labels = _feed(64, 1, dtype=tf.int64)
    loss = tf.reduce_mean(tf.nn.sampled_softmax_loss(w, b, labels, h, 50, 5000))
    loss += tf.reduce_mean(tf.nn.nce_loss(w, b, labels, h, 50, 5000, remove_accidental_hits=True))
    _train(loss, v1.train.AdagradOptimizer(.1))


@model
def speech_ctc():
    x = _feed(50, 4, 20)
    logits = tf.tensordot(x, _variable("w", 20, 12), 1)
    labels = tf.SparseTensor(_feed(None, 2, dtype=tf.int64), _feed(None, dtype=tf.int32), [4, 9])
    _train(tf.reduce_mean(v1.nn.ctc_loss(labels, logits, _feed(4, dtype=tf.int32))))
    v1.nn.ctc_beam_search_decoder(logits, _feed(4, dtype=tf.int32), top_paths=3)


@model
def linear_algebra():
    a = _variable("a", 4, 6, 6)
    spd = tf.matmul(a, a, transpose_b=True) + tf.eye(6)
    chol = tf.linalg.cholesky(spd)
    loss = tf.reduce_sum(tf.linalg.cholesky_solve(chol, _feed(4, 6, 2)))
    loss += tf.reduce_sum(tf.linalg.logdet(spd)) + tf.reduce_sum(tf.linalg.svd(a)[0])
    loss += tf.reduce_sum(tf.linalg.eigh(spd)[0]) + tf.reduce_sum(tf.linalg.qr(a)[1])
    loss += tf.reduce_sum(tf.linalg.inv(spd)) + tf.reduce_sum(tf.linalg.triangular_solve(chol, a))
    loss += tf.reduce_sum(tf.abs(tf.signal.rfft(tf.reshape(a, [4, 36]))))
    loss += tf.reduce_sum(tf.abs(tf.signal.ifft2d(tf.signal.fft2d(tf.cast(a, tf.complex64)))))
    _train(loss)


@model
def input_pipeline():
    files = tf.data.Dataset.from_tensor_slices(["a", "b"]).repeat()

    def read(name):
        image = tf.io.decode_jpeg(tf.io.read_file(name), channels=3)
        return tf.image.resize(image, [32, 32]), tf.strings.length(name)

    images, labels = v1.data.make_one_shot_iterator(
        files.map(read).batch(8, drop_remainder=True)).get_next()
    h = v1.layers.flatten(v1.layers.conv2d(images, 8, 3, 2, activation=tf.nn.relu))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=v1.layers.dense(h, 10)))
    v1.summary.scalar("loss", loss)
    v1.summary.histogram("h", h)
    v1.summary.image("images", images)
    v1.summary.merge_all()
    _train(loss)
    v1.train.Saver()
