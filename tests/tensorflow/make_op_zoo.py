"""Writes tests/rewrite_core/analysis/shapes/op_zoo: one graph of many ops, and what TensorFlow infers of it.

    python tests/tensorflow/make_op_zoo.py OUT_FOLDER

Each op stands there several times: with shapes that are known, partly known and unknown. The table
(shapes.tsv.gz, in the form of tests/graphs) is what TensorFlow's C++ shape functions say when the
graph is imported. What TensorFlow refuses to build is an error of this script.
"""
import gzip
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf  # noqa: E402

raw = tf.raw_ops
f32, i32, i64 = tf.float32, tf.int32, tf.int64


def build():
    def p(*dims, dtype=f32):
        """A placeholder; None is an unknown dimension, p(...) of Ellipsis an unknown rank."""
        shape = None if dims == (Ellipsis,) else list(dims)
        return tf.compat.v1.placeholder(dtype, shape)

    def ints(*dims):
        return p(*dims, dtype=i32)

    def c(value, dtype=i32):
        return tf.constant(value, dtype)

    unknown = p(...)
    image, open_image = p(8, 32, 30, 6), p(None, None, 30, 6)
    volume, open_volume = p(2, 8, 9, 10, 4), p(None, 8, None, 10, 4)
    nchw = p(8, 6, 32, 30)

    # Convolutions, in all paddings, strides and dilations.
    for padding, explicit in (("SAME", []), ("VALID", []), ("EXPLICIT", [0, 0, 1, 2, 3, 0, 0, 0])):
        for stride in (1, 2, 3):
            for dilation in (1, 2):
                for x in (image, open_image, unknown):
                    raw.Conv2D(input=x, filter=p(3, 5, 6, 7), strides=[1, stride, stride, 1],
                               padding=padding, explicit_paddings=explicit,
                               dilations=[1, dilation, dilation, 1])
        raw.Conv2D(input=nchw, filter=p(3, 5, 3, 8), strides=[1, 1, 2, 2], padding=padding,
                   explicit_paddings=[0, 0, 0, 0, 1, 2, 3, 0] if explicit else [],
                   data_format="NCHW")
    for padding in ("SAME", "VALID"):
        for x in (volume, open_volume, unknown):
            raw.Conv3D(input=x, filter=p(3, 2, 3, 4, 5), strides=[1, 2, 1, 3, 1], padding=padding)
        raw.Conv3D(input=p(2, 4, 8, 9, 10), filter=p(3, 2, 3, 4, 5), strides=[1, 1, 2, 1, 3],
                   padding=padding, data_format="NCDHW")
        for x in (image, open_image, unknown):
            raw.DepthwiseConv2dNative(input=x, filter=p(3, 5, 6, 2), strides=[1, 2, 2, 1],
                                      padding=padding)
            raw.Dilation2D(input=x, filter=p(3, 3, 6), strides=[1, 2, 2, 1], rates=[1, 2, 2, 1],
                           padding=padding)
            for pool in (raw.MaxPool, raw.AvgPool):
                args = {"input": x} if pool is raw.MaxPool else {"value": x}
                pool(ksize=[1, 3, 2, 1], strides=[1, 2, 2, 1], padding=padding, **args)
            raw.MaxPoolV2(input=x, ksize=c([1, 3, 2, 1]), strides=c([1, 2, 2, 1]), padding=padding)
            raw.MaxPoolWithArgmax(input=x, ksize=[1, 3, 2, 1], strides=[1, 2, 2, 1],
                                  padding=padding)
            raw.ExtractImagePatches(images=x, ksizes=[1, 3, 2, 1], strides=[1, 2, 3, 1],
                                    rates=[1, 1, 2, 1], padding=padding)
        for pool in (raw.MaxPool3D, raw.AvgPool3D):
            for x in (volume, open_volume, unknown):
                pool(input=x, ksize=[1, 2, 3, 2, 1], strides=[1, 2, 2, 1, 1], padding=padding)
        raw.MaxPool(input=nchw, ksize=[1, 1, 3, 2], strides=[1, 1, 2, 2], padding=padding,
                    data_format="NCHW")
    sizes = raw.Shape(input=open_image)
    for s in (c([8, 32, 30, 6]), sizes, ints(4), ints(None), c([32, 30])):
        raw.Conv2DBackpropInput(input_sizes=s, filter=p(3, 5, 6, 7),
                                out_backprop=p(None, None, None, 7), strides=[1, 1, 1, 1],
                                padding="SAME")
    for s in (c([3, 5, 6, 7]), ints(4)):
        raw.Conv2DBackpropFilter(input=image, filter_sizes=s, out_backprop=p(8, 32, 30, 7),
                                 strides=[1, 1, 1, 1], padding="SAME")
        raw.DepthwiseConv2dNativeBackpropFilter(input=image, filter_sizes=s,
                                                out_backprop=p(8, 32, 30, 12),
                                                strides=[1, 1, 1, 1], padding="SAME")
    for s in (c([2, 8, 9, 10, 4]), ints(5)):
        raw.Conv3DBackpropInputV2(input_sizes=s, filter=p(3, 3, 3, 4, 5),
                                  out_backprop=p(2, 8, 9, 10, 5), strides=[1] * 5, padding="SAME")
        raw.Conv3DBackpropFilterV2(input=volume, filter_sizes=s, out_backprop=p(2, 8, 9, 10, 5),
                                   strides=[1] * 5, padding="SAME")

    # Normalization, activations, losses.
    for x in (image, open_image, unknown):
        bn = raw.FusedBatchNormV3(x=x, scale=p(6), offset=p(6), mean=p(6), variance=p(6))
        raw.FusedBatchNormGradV3(y_backprop=x, x=x, scale=p(6), reserve_space_1=bn[3],
                                 reserve_space_2=bn[4], reserve_space_3=bn[5])
        raw.BiasAdd(value=x, bias=p(6))
        raw.BiasAddGrad(out_backprop=x)
        raw.LRN(input=x)
        raw.SpaceToDepth(input=raw.Slice(input=image, begin=c([0] * 4), size=c([8, 32, 30, 6])),
                         block_size=2)
    raw.BiasAdd(value=nchw, bias=p(None), data_format="NCHW")
    raw.BiasAddGrad(out_backprop=nchw, data_format="NCHW")
    raw.BiasAddGrad(out_backprop=p(2, 3, 4, 5, 6), data_format="NCHW")
    raw.DepthToSpace(input=p(None, 3, 4, 12), block_size=2)
    raw.DepthToSpace(input=p(2, 12, 3, None), block_size=2, data_format="NCHW")
    for x in (p(5, 7), p(None, 7), p(...)):
        raw.Softmax(logits=x)
        raw.LogSoftmax(logits=x)
        raw.SoftmaxCrossEntropyWithLogits(features=x, labels=p(5, 7))
        raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=ints(None))
        raw.InTopKV2(predictions=x, targets=ints(None), k=2)
        for k in (c(3), ints()):
            raw.TopKV2(input=x, k=k)
        raw.NthElement(input=x, n=c(1))
        raw.L2Loss(t=x)
        raw.ReluGrad(gradients=x, features=p(5, None))

    # Products.
    for a in (p(4, 3), p(None, 3), p(...)):
        for b in (p(3, 5), p(...)):
            raw.MatMul(a=a, b=b)
    raw.MatMul(a=p(3, 4), b=p(5, 3), transpose_a=True, transpose_b=True)
    for x, y in ((p(2, 7, 4, 3), p(2, 7, 3, 5)), (p(1, 7, 4, 3), p(2, 1, 3, 5)),
                 (p(7, 4, 3), p(2, None, 3, 5)), (p(...), p(2, 3, 5))):
        raw.BatchMatMulV2(x=x, y=y)
    raw.BatchMatMulV2(x=p(2, 3, 4), y=p(2, 5, 3), adj_x=True, adj_y=True)
    raw.BatchMatMul(x=p(2, None, 4, 3), y=p(2, 7, 3, 5))
    raw.Einsum(inputs=[p(2, 3, 4), p(2, 4, 5)], equation="bij,bjk->bik")
    raw.Einsum(inputs=[p(9, 2, None, 4), p(1, 4, 5)], equation="...ij,...jk->...ik")
    raw.Einsum(inputs=[p(3, 4)], equation="ij->ji")
    raw.Einsum(inputs=[p(3, 4)], equation="ij->")
    raw.Einsum(inputs=[p(...), p(4, 5)], equation="abj,jk->abk")

    # Elementwise.
    pairs = ((p(2, 3), p(2, 3)), (p(2, 1), p(3)), (p(None, 3), p(5, 1)), (p(None, 1), p(None, 4)),
             (p(), p(2, 3)), (p(...), p(2, 3)), (p(7, None), p(None, 3)), (p(0, 1), p(1, 3)))
    for x, y in pairs:
        raw.AddV2(x=x, y=y)
        raw.Less(x=x, y=y)
        raw.Equal(x=x, y=y)
        raw.SelectV2(condition=p(dtype=tf.bool), t=x, e=y)
        raw.SquaredDifference(x=x, y=y)
    raw.AddN(inputs=[p(2, None), p(None, 3), p(...)])
    raw.Select(condition=p(None, dtype=tf.bool), x=p(4, 3), y=p(None, 3))
    raw.Select(condition=p(dtype=tf.bool), x=p(4, None), y=p(None, 3))
    raw.Select(condition=p(2, 3, dtype=tf.bool), x=p(None, 3), y=p(...))
    raw.ClipByValue(t=p(2, None), clip_value_min=p(), clip_value_max=p())

    # Reductions.
    for x in (p(2, 3, 4), p(None, 3, None), p(...)):
        for axes in (c(1), c([0, 2]), c([-1]), c([0, 1, 2]), c([], i32), ints(1), ints(),
                     ints(None)):
            for keep in (False, True):
                raw.Sum(input=x, axis=axes, keep_dims=keep)
        for axis in (c(0), c(-1), ints()):
            raw.ArgMax(input=x, dimension=axis)
        raw.Cumsum(x=x, axis=c(0))

    # Arrays.
    for x in (p(2, 3, 4), p(None, 3, 4), p(2, None, None), p(...)):
        for shape in (c([6, 4]), c([-1, 4]), c([4, -1]), ints(3), ints(None), c([-1])):
            raw.Reshape(tensor=x, shape=shape)
        for axis in (c(0), c(1), c(-1), ints()):
            raw.ExpandDims(input=x, axis=axis)
            raw.ConcatV2(values=[x, p(2, 3, None), x], axis=axis)
            raw.GatherV2(params=x, indices=ints(7, None), axis=axis)
            raw.GatherV2(params=x, indices=ints(2, 5), axis=c(1), batch_dims=1)
        for perm in (c([2, 0, 1]), ints(3), ints(None)):
            raw.Transpose(x=x, perm=perm)
        for begin, size in ((c([0, 1, 1]), c([2, 2, -1])), (ints(3), c([2, -1, 1])),
                            (c([0, 1, 0]), ints(3)), (ints(None), ints(None))):
            raw.Slice(input=x, begin=begin, size=size)
        for paddings in (c([[1, 2], [0, 0], [3, 0]]), ints(3, 2), ints(None, None)):
            raw.Pad(input=x, paddings=paddings)
            raw.MirrorPad(input=x, paddings=paddings, mode="SYMMETRIC")
        for multiples in (c([1, 2, 3]), ints(3), ints(None)):
            raw.Tile(input=x, multiples=multiples)
        for axis in (0, 1, 2, -1):
            raw.Pack(values=[x, p(2, 3, 4)], axis=axis)
        raw.Unpack(value=raw.Reshape(tensor=x, shape=c([2, 3, 4])), num=3, axis=1)
        raw.Split(axis=c(2), value=x, num_split=2)
        raw.Split(axis=ints(), value=x, num_split=2)
        raw.SplitV(value=x, size_splits=c([1, -1]), axis=c(1), num_split=2)
        raw.SplitV(value=x, size_splits=ints(2), axis=c(1), num_split=2)
        for indices in (ints(5, 2), ints(5, None), ints(None, 3), ints(...)):
            raw.GatherNd(params=x, indices=indices)
        raw.OneHot(indices=raw.Cast(x=x, DstT=i32), depth=c(10), on_value=1.0, off_value=0.0)
        raw.OneHot(indices=raw.Cast(x=x, DstT=i32), depth=ints(), on_value=1.0, off_value=0.0,
                   axis=1)
        raw.Where(condition=x)
        raw.ReverseV2(tensor=x, axis=c([0]))
        raw.MatrixDiag(diagonal=x)
        raw.MatrixDiagPart(input=x)
        raw.MatrixSetDiag(input=x, diagonal=p(2, 3))
        raw.Rank(input=x), raw.Size(input=x)
        # Slices as Python writes them.
        x[0], x[-1], x[:, 1:], x[:, None, ..., 0], x[..., None], x[:, ::2], x[:, ::-1, 1:3]
        x[:, :-1], x[0, 1, 2], x[1:1], x[:, 5:2:-1]
        raw.SpaceToBatchND(input=x, block_shape=c([3]), paddings=c([[1, 2]]))
        raw.SpaceToBatchND(input=x, block_shape=ints(1), paddings=c([[1, 2]]))
        raw.BatchToSpaceND(input=x, block_shape=c([2]), crops=c([[1, 0]]))
    raw.Squeeze(input=p(1, 3, 1)), raw.Squeeze(input=p(1, None, 1))
    raw.Squeeze(input=p(1, None, 1), axis=[0]), raw.Squeeze(input=p(1, None, 1), axis=[1, -1])
    raw.SpaceToBatch(input=p(2, 3, 4, 5), paddings=c([[1, 0], [0, 0]]), block_size=2)
    raw.BatchToSpace(input=p(8, 3, 4, 5), crops=c([[1, 0], [0, 1]]), block_size=2)
    raw.ScatterNd(indices=ints(5, 1), updates=p(5, 3), shape=c([8, 3]))
    raw.ScatterNd(indices=ints(5, 1), updates=p(5, 3), shape=ints(2))
    raw.TensorScatterAdd(tensor=p(8, 3), indices=ints(5, 1), updates=p(5, 3))
    raw.UniqueV2(x=ints(7), axis=c([], i64)), raw.Unique(x=ints(7)), raw.UniqueWithCounts(x=ints(7))
    raw.InvertPermutation(x=ints(None)), raw.ListDiff(x=ints(4), y=ints(2))
    raw.DynamicPartition(data=p(4, 5, 6), partitions=ints(4), num_partitions=3)
    raw.DynamicStitch(indices=[c([0, 2]), c([1])], data=[p(2, 5), p(1, 5)])
    raw.DynamicStitch(indices=[ints(2), c([1])], data=[p(2, 5), p(1, 5)])
    raw.Range(start=c(2), limit=c(11), delta=c(3)), raw.Range(start=c(9), limit=c(1), delta=c(-2))
    raw.Range(start=c(0), limit=ints(), delta=c(1)), raw.LinSpace(start=0.0, stop=1.0, num=c(5))
    raw.Diag(diagonal=p(2, 3)), raw.DiagPart(input=p(2, None, 2, 3))
    raw.BroadcastTo(input=p(3), shape=c([2, 3])), raw.BroadcastTo(input=p(3), shape=ints(None))
    raw.Bitcast(input=p(4, 3), type=tf.int8), raw.Bitcast(input=p(4, 2), type=tf.float64)
    raw.EnsureShape(input=p(None, 3), shape=[2, None])
    raw.BroadcastArgs(s0=c([2, 1]), s1=c([3])), raw.BroadcastGradientArgs(s0=c([2, 1]), s1=c([3]))
    raw.Fill(dims=c([2, 3]), value=1.0), raw.Fill(dims=ints(2), value=1.0)
    raw.Fill(dims=ints(None), value=1.0)

    # Shapes that are computed.
    x = p(None, 7, 12)
    shape = raw.Shape(input=x)
    n = shape[0]
    for dims in ([n, 84], [-1, shape[1] * shape[2]], [n * 1, shape[1], 3, 4], [shape[2] // 4, -1],
                 [shape[1] + 5, -1], [raw.Maximum(x=shape[1], y=shape[2]), -1]):
        raw.Reshape(tensor=x, shape=raw.Pack(values=dims))
    raw.Reshape(tensor=x, shape=raw.ConcatV2(values=[shape[:1], [84]], axis=c(0)))
    raw.Reshape(tensor=x, shape=raw.ConcatV2(values=[shape[:2], [4, 3]], axis=c(0)))
    raw.Fill(dims=shape[1:], value=0.0)
    raw.Fill(dims=raw.GatherV2(params=raw.Shape(input=p(7, 12)), indices=c([1, 0]), axis=c(0)),
             value=0.0)
    raw.Fill(dims=raw.Prod(input=raw.Shape(input=p(7, 12)), axis=c([0]), keep_dims=True), value=0.0)

    # From matrices of shapes: gradients of concats of many tensors, and of tiles.
    for columns in (p(3, 5), p(None, 5)):
        a, b = raw.Shape(input=columns), raw.Shape(input=p(4, 5))
        both = raw.Pack(values=[a, b], axis=1)  # [[3, 4], [5, 5]]
        sizes = raw.Slice(input=both, begin=c([0, 0]), size=c([1, -1]))
        raw.SplitV(value=p(7, 5), size_splits=raw.Squeeze(input=sizes, axis=[0]), axis=c(0),
                   num_split=2)
        for part in raw.Unpack(value=both, num=2, axis=1) + raw.Unpack(value=both, num=2, axis=0):
            raw.Fill(dims=part, value=0.0)
        for part in raw.Split(axis=c(1), value=both, num_split=2):
            raw.Fill(dims=raw.Reshape(tensor=part, shape=c([-1])), value=0.0)
        for part in raw.SplitV(value=both, size_splits=c([1, 1]), axis=c(0), num_split=2):
            raw.Fill(dims=raw.Reshape(tensor=part, shape=c([2])), value=0.0)
        turned = raw.Transpose(x=both, perm=c([1, 0]))
        joined = raw.ConcatV2(values=[both, turned], axis=c(1))
        for whole in (both, turned, joined):
            raw.Fill(dims=raw.Reshape(tensor=whole, shape=c([-1])), value=0.0)

    # Segments, linear algebra, Fourier transforms, random numbers.
    raw.SegmentSum(data=p(8, 3), segment_ids=ints(8))
    for num in (c(5), ints()):
        raw.UnsortedSegmentSum(data=p(8, 3), segment_ids=ints(8), num_segments=num)
        raw.SparseSegmentSumWithNumSegments(data=p(8, 3), indices=ints(6), segment_ids=ints(6),
                                            num_segments=num)
        raw.SparseSegmentMeanGrad(grad=p(8, 3), indices=ints(6), segment_ids=ints(6),
                                  output_dim0=num)
        raw.Multinomial(logits=p(None, 9), num_samples=num)
    for x in (p(2, 4, 4), p(None, 4, None)):
        raw.Cholesky(input=x), raw.MatrixInverse(input=x), raw.MatrixDeterminant(input=x)
        raw.MatrixSolve(matrix=x, rhs=p(2, 4, 3)), raw.SelfAdjointEigV2(input=x)
    raw.Qr(input=p(2, 5, 3)), raw.Qr(input=p(2, 5, 3), full_matrices=True)
    raw.Svd(input=p(2, 5, 3)), raw.Svd(input=p(2, 5, None), full_matrices=True)
    raw.RFFT(input=p(2, 16), fft_length=c([12])), raw.RFFT(input=p(2, 16), fft_length=ints(1))
    raw.IRFFT2D(input=p(2, 16, 9, dtype=tf.complex64), fft_length=c([16, 16]))
    for s in (c([2, 3]), ints(2), ints(None)):
        raw.TruncatedNormal(shape=s, dtype=f32), raw.RandomGamma(shape=s, alpha=p(4))
        raw.StatelessRandomUniformV2(shape=s, key=p(1, dtype=tf.uint64),
                                     counter=p(2, dtype=tf.uint64), alg=c(1))

    # Lists: written shapes show those read; counts are known or not.
    for element, value in (([None, 3], p(4, 3)), ([4, 3], p(None, 3)), (None, p(2, None))):
        for size in (c(7), ints()):
            array = raw.TensorArrayV3(size=size, dtype=f32, element_shape=element,
                                      identical_element_shapes=True)
            flow = raw.TensorArrayWriteV3(handle=array[0], index=c(0), value=value,
                                          flow_in=array[1])
            raw.TensorArrayReadV3(handle=array[0], index=c(0), flow_in=flow, dtype=f32)
            raw.TensorArrayGatherV3(handle=array[0], indices=c([0, 1]), flow_in=flow, dtype=f32)
            raw.TensorArraySizeV3(handle=array[0], flow_in=flow)
            gradient = raw.TensorArrayGradV3(handle=array[0], flow_in=flow, source="g")
            raw.TensorArrayReadV3(handle=gradient[0], index=c(0), flow_in=gradient[1], dtype=f32)
            spelled = c(-1) if element is None else c([-1 if d is None else d for d in element])
            reserved = raw.TensorListReserve(element_shape=spelled, num_elements=size,
                                             element_dtype=f32)
            filled = raw.TensorListSetItem(input_handle=reserved, index=c(0), item=value)
            raw.TensorListGetItem(input_handle=filled, index=c(0), element_shape=c(-1),
                                  element_dtype=f32)
            raw.TensorListStack(input_handle=filled, element_shape=c(-1), element_dtype=f32)
            raw.TensorListLength(input_handle=filled)
    array = raw.TensorArrayV3(size=c(5), dtype=f32, element_shape=[None, 3],
                              identical_element_shapes=True)
    flow = raw.TensorArrayScatterV3(handle=array[0], indices=c([0, 1, 2, 3, 4]), value=p(5, 8, 3),
                                    flow_in=array[1])
    raw.TensorArrayReadV3(handle=array[0], index=c(2), flow_in=flow, dtype=f32)
    stack = raw.StackV2(max_size=c(-1), elem_type=f32)
    with tf.control_dependencies([raw.StackPushV2(handle=stack, elem=p(6, 2))]):
        raw.StackPopV2(handle=stack, elem_type=f32)
    pushed = raw.EmptyTensorList(element_shape=c(-1), max_num_elements=c(-1), element_dtype=f32)
    for value in (p(3, 2), p(3, None)):
        pushed = raw.TensorListPushBack(input_handle=pushed, tensor=value)
    raw.TensorListLength(input_handle=pushed)
    raw.TensorListStack(input_handle=pushed, element_shape=c(-1), element_dtype=f32)
    raw.TensorListPopBack(input_handle=pushed, element_shape=c(-1), element_dtype=f32)
    rows = raw.TensorListFromTensor(tensor=p(9, 2, 4), element_shape=c(-1))
    raw.TensorListStack(input_handle=rows, element_shape=c(-1), element_dtype=f32)
    raw.TensorListGetItem(input_handle=rows, index=c(1), element_shape=c(-1), element_dtype=f32)

    # Variables.
    v = raw.VarHandleOp(dtype=f32, shape=[5, 3])
    raw.ReadVariableOp(resource=v, dtype=f32)
    raw.ResourceGather(resource=v, indices=ints(None, 2), dtype=f32)
    raw.ResourceGatherNd(resource=v, indices=ints(7, 1), dtype=f32)
    raw.VariableShape(input=v)
    table = raw.VarHandleOp(dtype=f32, shape=[None, 64])
    raw.ResourceGatherNd(resource=table, indices=ints(7, 1), dtype=f32)
    for table in (table, p(dtype=tf.resource)):
        for indices in (ints(None), ints(9, 2), ints(...)):
            raw.ResourceGather(resource=table, indices=indices, dtype=f32)
        raw.ReadVariableOp(resource=table, dtype=f32)
    captured = p(dtype=tf.resource)
    raw.AssignVariableOp(resource=captured, value=p(4, 5))
    raw.AssignAddVariableOp(resource=captured, value=p(4, None))
    raw.ReadVariableOp(resource=captured, dtype=f32)
    raw.ResourceGather(resource=captured, indices=ints(None, 3), dtype=f32)
    slots = [p(dtype=tf.resource) for _ in range(3)]
    raw.ResourceApplyAdam(var=slots[0], m=slots[1], v=slots[2], beta1_power=p(), beta2_power=p(),
                          lr=p(), beta1=p(), beta2=p(), epsilon=p(), grad=p(6, 7))
    raw.ResourceSparseApplyAdagrad(var=slots[0], accum=slots[1], lr=p(), grad=p(2, 7),
                                   indices=ints(2))
    for slot in slots:
        raw.ReadVariableOp(resource=slot, dtype=f32)
    ref = raw.VariableV2(shape=[5, 3], dtype=f32)
    raw.Assign(ref=ref, value=p(5, None)), raw.ScatterAdd(ref=ref, indices=ints(2), updates=p(2, 3))


def main():
    with tf.Graph().as_default() as graph:
        build()
        graph_def = graph.as_graph_def()
    rows = []
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        for op in graph.get_operations():
            for tensor in op.outputs:
                shape = "?"
                if tensor.shape.rank is not None:
                    shape = "[%s]" % ",".join("?" if d is None else str(d)
                                              for d in tensor.shape.as_list())
                rows.append("%s\t%s\t%s\n" % (tensor.name, tensor.dtype.name, shape))
    for name, data in (("graph.pb", graph_def.SerializeToString(deterministic=True)),
                       ("shapes.tsv", "".join(rows).encode())):
        with open(os.path.join(sys.argv[1], name + ".gz"), "wb") as f:
            with gzip.GzipFile(filename="", fileobj=f, mode="wb", compresslevel=9, mtime=0) as z:
                z.write(data)
    print("%d nodes, %d tensors" % (len(graph_def.node), len(rows)))


if __name__ == "__main__":
    main()
