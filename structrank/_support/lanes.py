"""Sums in a fixed order for kernels: four partial sums side by side.

A compiler may vectorise ``total += x[i] * y[i]`` only if it may reorder the sum, and its order then depends on the processor
and on whether a function was compiled into its caller or linked from the cache. Kernels fix the order instead: `Lanes` are four
doubles with elementwise arithmetic, each operation rounded by itself, so that a result has the same bits on every processor.
"""

import operator

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from structrank._support.compile import kernel

_VECTOR = ir.VectorType(ir.DoubleType(), 4)


class Lanes(types.Type):
    """numba's type of four doubles in one register."""

    def __init__(self):
        super().__init__(name="Lanes")


_LANES = Lanes()


@register_model(Lanes)
class _Register(models.PrimitiveModel):
    def __init__(self, manager, fe_type):
        super().__init__(manager, fe_type, _VECTOR)


@intrinsic
def zeros(typing_context):
    """Return four zeros."""
    return _LANES(), lambda context, builder, signature, arguments: ir.Constant(_VECTOR, [0.0] * 4)


@intrinsic
def load(typing_context, values, i):
    """Return ``values[i]`` to ``values[i + 3]`` of a contiguous array of float32 or float64."""
    if not (isinstance(values, types.Array) and values.ndim == 1 and values.layout == "C"):
        raise TypingError(f"lanes are loaded from contiguous arrays of one dimension; got {values}")

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        element = context.get_data_type(signature.args[0].dtype)
        pointer = builder.gep(array.data, [arguments[1]], source_etype=element)
        four = ir.VectorType(element, 4)
        loaded = builder.load(builder.bitcast(pointer, four.as_pointer()), typ=four, align=1)
        return loaded if four == _VECTOR else builder.fpext(loaded, _VECTOR)

    return _LANES(values, types.intp), generate


@intrinsic
def sum_lanes(typing_context, lanes):
    """Return the sum of the four."""

    def generate(context, builder, signature, arguments):
        one, two, three, four = (builder.extract_element(arguments[0], ir.IntType(32)(i)) for i in range(4))
        return builder.fadd(builder.fadd(one, two), builder.fadd(three, four))

    return types.float64(lanes), generate


def _define(operation, instruction):
    @type_callable(operation)
    def resolve(typing_context):
        def typer(left, right):
            return _LANES if left == right == _LANES else None

        return typer

    @lower_builtin(operation, _LANES, _LANES)
    def generate(context, builder, signature, arguments):
        return getattr(builder, instruction)(*arguments)


for _operations, _instruction in (
    ((operator.add, operator.iadd), "fadd"),
    ((operator.sub, operator.isub), "fsub"),
    ((operator.mul, operator.imul), "fmul"),
):
    for _operation in _operations:
        _define(_operation, _instruction)


@kernel(inner=True, forceinline=True)
def dot(x, y):
    """Return x.y."""
    n = x.shape[0]
    a = b = c = d = zeros()
    for i in range(0, n - 15, 16):
        a += load(x, i) * load(y, i)
        b += load(x, i + 4) * load(y, i + 4)
        c += load(x, i + 8) * load(y, i + 8)
        d += load(x, i + 12) * load(y, i + 12)
    for i in range(n - n % 16, n - 3, 4):
        a += load(x, i) * load(y, i)
    rest = 0.0
    for i in range(n - n % 4, n):
        rest += x[i] * y[i]
    return sum_lanes((a + b) + (c + d)) + rest


@kernel(inner=True, forceinline=True)
def dot_of_difference(x, y, z):
    """Return x.(y - z)."""
    n = x.shape[0]
    a = zeros()
    for i in range(0, n - 3, 4):
        a += load(x, i) * (load(y, i) - load(z, i))
    rest = 0.0
    for i in range(n - n % 4, n):
        rest += x[i] * (y[i] - z[i])
    return sum_lanes(a) + rest


@kernel(inner=True, forceinline=True)
def squared_distance(x, y):
    """Return |x - y|^2."""
    n = x.shape[0]
    a = zeros()
    for i in range(0, n - 3, 4):
        difference = load(x, i) - load(y, i)
        a += difference * difference
    rest = 0.0
    for i in range(n - n % 4, n):
        rest += (x[i] - y[i]) ** 2
    return sum_lanes(a) + rest
