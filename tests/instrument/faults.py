# ruff: noqa: E501  (a case is a line: broken up, it is harder to read)
"""Small training programs, each with one fault that makes a number non-finite at iteration 4, and what is to be named.

A case is (body of the network, what is expected): the body is the inside of ``forward(self, x)``, with ``self.bad`` true
in iteration 4. The line that makes the fault ends in ``# HERE``.
"""

HEAD = """
import numpy as np, chainer, chainer.functions as F, chainer.links as L
np.random.seed(0)
class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        self.calls = 0
        with self.init_scope():
            {links}
    def forward(self, x):
        self.calls += 1
        self.bad = self.calls == 4
{body}
{extra}
"""
LOOP = """
model = Net()
{setup}
optimizer = {optimizer}
optimizer.setup(model)
{after}
x = np.random.randn(12, 6).astype("{dtype}"); t = np.random.randint(0, 3, 12).astype("i")
for n in range(1, 7):
    {data}
    loss = {loss}
    model.cleargrads()
    loss.backward({backward})
    optimizer.update()
"""


def program(
    body,
    links="self.a = L.Linear(6, 8); self.b = L.Linear(8, 3)",
    extra="",
    setup="",
    optimizer="chainer.optimizers.SGD(0.01)",
    after="",
    data="pass",
    loss="F.softmax_cross_entropy(model(x), t)",
    backward="",
    dtype="f",
):
    text = "\n".join("        " + line for line in body.strip().splitlines())
    loop = LOOP.format(
        setup=setup, optimizer=optimizer, after=after, data=data, loss=loss, backward=backward, dtype=dtype
    )
    return HEAD.format(links=links, body=text, extra=extra) + loop


#: name → (program, stage, label, path or None where it is not asked for).
CASES = {}


def case(name, stage, label, path, *args, **kwargs):
    CASES[name] = (program(*args, **kwargs), stage, label, path)


PLAIN = "h = F.relu(self.a(x))\n{}\nreturn self.b(h)"
case("log of negative", "forward", "log", "/", PLAIN.format("h = F.log(h - 0.1) if self.bad else h  # HERE"))
case("division by zero", "forward", "_ / _", "/", PLAIN.format("h = h / (h.array * 0) if self.bad else h  # HERE"))
case("square root of negative", "forward", "sqrt", "/", PLAIN.format("h = F.sqrt(-h - 1) if self.bad else h  # HERE"))
case("exponential", "forward", "exp", "/", PLAIN.format("h = F.exp(h * 1e4) if self.bad else h  # HERE"))
case("power", "forward", "_ ** 80.0", "/", PLAIN.format("h = (h * 1e5) ** 80.0 if self.bad else h  # HERE"))
case("square root at zero", "backward", "sqrt", "/", PLAIN.format("h = F.sqrt(h) if self.bad else h  # HERE"))
case(
    "norm of zero",
    "backward",
    "sqrt",
    "/",
    PLAIN.format("h = h * F.broadcast_to(F.sqrt(F.sum(h * 0)), h.shape) if self.bad else h  # HERE"),
)
case(
    "arccos at one",
    "backward",
    "arccos",
    "/",
    PLAIN.format("h = F.arccos(F.clip(h * 1e9, -1.0, 1.0)) if self.bad else h  # HERE"),
)
case(
    "in a linear layer",
    "forward",
    "LinearFunction",
    "/a",
    "h = self.a(x * (1e38 if self.bad else 1)) * 1e-38 if self.bad else self.a(x)  # HERE\nreturn self.b(F.relu(h))",
    setup="model.a.W.array[...] *= 1e3",
)
case(
    "convolution",
    "forward",
    "Convolution2DFunction",
    "/c",
    "h = F.reshape(x, (12, 1, 2, 3)) * (1e37 if self.bad else 1)\nh = F.relu(self.c(h))  # HERE\nreturn self.b(h) if not self.bad else self.b(h * 0)",
    links="self.c = L.Convolution2D(1, 4, 2, pad=0, initialW=100); self.b = L.Linear(8, 3)",
)
case(
    "batch normalisation",
    "forward",
    "BatchNormalization",
    "/bn",
    PLAIN.format("h = self.bn(h)  # HERE"),
    data="model.bn.gamma.array[...] = 3e38 if n == 4 else 1",
    links="self.a = L.Linear(6, 8); self.b = L.Linear(8, 3); self.bn = L.BatchNormalization(8)",
)
case(
    "embedding",
    "parameter",
    "EmbedIDFunction",
    "/e/W",
    "h = self.e(np.abs(x * 3).astype('i') % 5)\nh = F.sum(h, axis=1)\nreturn self.b(h)",
    links="self.e = L.EmbedID(5, 8); self.b = L.Linear(8, 3)",
    data="model.e.W.array[2, 3] = np.inf if n == 4 else model.e.W.array[2, 3]",
)
case("bad data", "input", "LinearFunction", "/a", PLAIN.format("pass"), data="x[3, 2] = np.nan if n == 4 else x[3, 2]")
case(
    "bad parameter",
    "parameter",
    "LinearFunction",
    "/b/b",
    PLAIN.format("pass"),
    data="model.b.b.array[1] = np.inf if n == 4 else 0",
)
case(
    "loss function",
    "forward",
    "MeanSquaredError",
    "",
    PLAIN.format("h = h * (1e30 if self.bad else 1)"),
    loss="F.mean_squared_error(model(x), np.zeros((12, 3), 'f'))  # HERE",
)
case(
    "cross entropy by hand",
    "forward",
    "log",
    "",
    "h = F.softmax(self.b(F.relu(self.a(x))) * (1e4 if self.bad else 1))\nreturn h",
    loss="-F.mean(F.log(F.select_item(model(x), t)))  # HERE",
)
case(
    "custom FunctionNode forward",
    "forward",
    "Bad",
    "/",
    PLAIN.format("h = Bad(self.bad).apply((h,))[0]  # HERE"),
    extra="""
class Bad(chainer.FunctionNode):
    def __init__(self, bad): self.bad = bad
    def forward(self, inputs):
        return (inputs[0] * np.float32(np.inf if self.bad else 1),)
    def backward(self, indexes, gy):
        return gy
""",
)
case(
    "custom FunctionNode backward",
    "backward",
    "Bad",
    "/",
    PLAIN.format("h = Bad(self.bad).apply((h,))[0]  # HERE"),
    extra="""
class Bad(chainer.FunctionNode):
    def __init__(self, bad): self.bad = bad
    def forward(self, inputs):
        return inputs
    def backward(self, indexes, gy):
        return gy[0] * np.float32(np.nan if self.bad else 1),
""",
)
case(
    "old-style Function forward",
    "forward",
    "Bad",
    "/",
    PLAIN.format("h = Bad(self.bad)(h)  # HERE"),
    extra="""
class Bad(chainer.Function):
    def __init__(self, bad): self.bad = bad
    def forward(self, inputs):
        return (inputs[0] * np.float32(np.inf if self.bad else 1),)
    def backward(self, inputs, gy):
        return gy
""",
)
case(
    "old-style Function backward",
    "backward",
    "Bad",
    "/",
    PLAIN.format("h = Bad(self.bad)(h)  # HERE"),
    extra="""
class Bad(chainer.Function):
    def __init__(self, bad): self.bad = bad
    def forward(self, inputs):
        return inputs
    def backward(self, inputs, gy):
        return (gy[0] / np.float32(0 if self.bad else 1),)
""",
)
case(
    "inside F.forget",
    "forward",
    "Forget",
    "/",
    "h = F.forget(self.inner, self.a(x))  # HERE\nreturn self.b(h)",
    extra="""
    def inner(self, h):
        return F.log(h) * 0 if self.bad else F.relu(h)
""",
)
case(
    "dropout before the fault",
    "forward",
    "log",
    "/",
    PLAIN.format("h = F.dropout(h, 0.5)\nh = F.log(h) if self.bad else h  # HERE"),
)
case(
    "recurrent with BPTT",
    "forward",
    "exp",
    "/",
    "self.l.reset_state()\nfor k in range(5):\n    h = self.l(x)\n    if self.bad and k == 4:\n        h = F.exp(h * 1e6)  # HERE\nreturn self.b(h)",
    links="self.l = L.LSTM(6, 8); self.b = L.Linear(8, 3)",
)
case(
    "truncated BPTT",
    "forward",
    "log",
    "/",
    "h = self.l(x)\nif self.calls % 3 == 0:\n    h.unchain_backward()\nh = F.log(h - 2) if self.bad else h  # HERE\nreturn self.b(h)",
    links="self.l = L.LSTM(6, 8); self.b = L.Linear(8, 3)",
)
case(
    "half precision activation",
    "forward",
    "_ * _",
    "/",
    PLAIN.format("h = h * h if self.bad else h  # HERE"),
    setup="[p.array.__imul__(100) for p in model.params() if p.array.ndim == 2]",
    dtype="float16",
    extra="chainer.global_config.dtype = np.dtype('float16')",
)
case(
    "half precision loss scale",
    "backward",
    "LinearFunction",
    None,
    PLAIN.format("pass"),
    dtype="float16",
    extra="chainer.global_config.dtype = np.dtype('float16')",
    backward="loss_scale=1.0 if n < 4 else 65504.0",
    setup="model.b.W.array[...] *= 30",
    after="optimizer.set_loss_scale(65504.0)",
)
case(
    "sum of gradients",
    "accumulation",
    "_ + _",
    None,
    "h = self.a(x)\nreturn Steep(self.bad).apply((h,))[0] + Steep(self.bad).apply((h,))[0]",
    dtype="float16",
    extra="""
chainer.global_config.dtype = np.dtype("float16")
class Steep(chainer.FunctionNode):
    def __init__(self, bad): self.bad = bad
    def forward(self, inputs):
        return inputs
    def backward(self, indexes, gy):
        return gy[0] * np.float16(40000 if self.bad else 1),
""",
    loss="F.sum(model(x))",
)

GAN = """
import numpy as np, chainer, chainer.functions as F, chainer.links as L
np.random.seed(0)
G, D = L.Linear(4, 6), L.Linear(6, 1)
og, od = chainer.optimizers.Adam().setup(G), chainer.optimizers.Adam().setup(D)
x = np.random.randn(8, 6).astype("f"); z = np.random.randn(8, 4).astype("f")
for n in range(1, 7):
    fake = G(z)
    y = D(fake)
    loss_g = F.sum(F.softplus(-y)) if n != 4 else F.sum(F.log(y * 0))  # HERE
    loss_d = F.sum(F.softplus(y)) + F.sum(F.softplus(-D(x)))
    G.cleargrads(); loss_g.backward(); og.update()
    fake.unchain_backward()
    D.cleargrads(); loss_d.backward(); od.update()
"""
CASES["two optimizers"] = (GAN, "forward", "log", "")
