"""The update rules of dlADMM (Wang, Yu, Chen and Zhao, KDD 2019, section 3), its regulariser the l1 norm.

With ``r_l = z_l - W_l a_{l-1} - b_l`` it minimises

    loss(z_L) + gamma sum |W| + nu/2 sum_{l<L} (|r_l|^2 + |a_l - relu(z_l)|^2) + u' r_L + rho/2 |r_L|^2

in turn: backwards ``a_l, z_l, b_l, W_l`` from the output to the input, forwards ``W_l, b_l, z_l, a_l``, then
``u <- u + rho r_L``. Steps in ``a`` and ``W`` are gradient steps on the quadratic, with a curvature that
doubles until it majorises; ``b`` and ``z`` have closed forms; ``z_L`` is found by FISTA.
Rows are observations here, so ``z_l = a_{l-1} W_l' + b_l``. NumPy alone.
"""

import numpy as np

from benchmarks.suites.tasks import Task, Weights

RHO = 1.0  # both rho and nu. The published 1e-6 has no penalty beside it; with gamma 1 it empties the network


class Split:
    """The variables of the splitting, started from a forward pass."""

    def __init__(self, task: Task, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.gamma, self.Y = task.gamma, np.eye(task.n_classes)[task.y]
        pairs = [*zip(task.sizes, task.sizes[1:])]
        self.W = [rng.normal(size=(n_out, n_in)) * np.sqrt(2 / n_in) for n_in, n_out in pairs]
        self.b = [np.zeros(n_out) for _, n_out in pairs]
        self.a, self.z = [task.X], []
        for l in range(len(self.W)):
            self.z.append(self.a[l] @ self.W[l].T + self.b[l])
            self.a.append(np.maximum(self.z[l], 0))
        self.u, self.rho = np.zeros_like(self.z[-1]), RHO

    def pull(self, l: int) -> np.ndarray:
        """Derivative of the quadratics of layer ``l`` in ``z_l``: ``nu r_l``, with the dual at the output."""
        r = self.z[l] - self.a[l] @ self.W[l].T - self.b[l]
        return self.rho * r + (self.u if l == len(self.W) - 1 else 0)

    def step_a(self, l: int) -> None:
        """``a_l`` between the layers ``l - 1`` and ``l``: a majorised gradient step."""
        target, W = np.maximum(self.z[l - 1], 0), self.W[l]
        slope = self.rho * (self.a[l] - target) - self.pull(l) @ W
        tau = self.rho
        while True:
            d = -slope / tau
            if self.rho * ((d**2).sum() + ((d @ W.T) ** 2).sum()) <= tau * (d**2).sum() * (1 + 1e-9):
                break
            tau *= 2
        self.a[l] = self.a[l] + d

    def step_W(self, l: int) -> None:
        """A majorised prox-gradient step."""
        slope, theta = -self.pull(l).T @ self.a[l], self.rho
        while True:
            V = self.W[l] - slope / theta
            new = np.sign(V) * np.maximum(np.abs(V) - self.gamma / theta, 0)
            d = new - self.W[l]
            if self.rho * ((self.a[l] @ d.T) ** 2).sum() <= theta * (d**2).sum() * (1 + 1e-9):
                break
            theta *= 2
        self.W[l] = new

    def step_b(self, l: int) -> None:
        """``b_l`` moves by the mean residual."""
        self.b[l] = self.b[l] + self.pull(l).mean(0) / self.rho

    def step_z(self, l: int) -> None:
        """Inside: the lower of the two branches of the ReLU. At the output: FISTA on the loss."""
        fit = self.a[l] @ self.W[l].T + self.b[l]
        if l == len(self.W) - 1:
            self.z[l] = self._at_output(fit)
            return
        a = self.a[l + 1]
        off, on = np.minimum(fit, 0), np.maximum((a + fit) / 2, 0)
        cost = lambda z: (z - fit) ** 2 + (a - np.maximum(z, 0)) ** 2  # noqa: E731
        self.z[l] = np.where(cost(off) <= cost(on), off, on)

    def _at_output(self, fit: np.ndarray, steps: int = 20) -> np.ndarray:
        z = ahead = self.z[-1]
        curvature = 0.5 + self.rho  # of the multinomial loss at most a half
        for k in range(steps):
            p = np.exp(ahead - ahead.max(1, keepdims=True))
            slope = p / p.sum(1, keepdims=True) - self.Y + self.u + self.rho * (ahead - fit)
            z, last = ahead - slope / curvature, z
            ahead = z + k / (k + 3) * (z - last)
        return z

    def sweep(self) -> None:
        """Backwards, forwards, dual."""
        last = len(self.W) - 1
        for l in range(last, -1, -1):
            if l < last:
                self.step_a(l + 1)
            for step in (self.step_z, self.step_b, self.step_W):
                step(l)
        for l in range(last + 1):
            for step in (self.step_W, self.step_b, self.step_z):
                step(l)
            if l < last:
                self.step_a(l + 1)
        self.u = self.u + self.rho * (self.z[-1] - self.a[-2] @ self.W[-1].T - self.b[-1])


def dladmm(task: Task, seed: int, iterations: float) -> Weights:
    """The weights after so many iterations."""
    split = Split(task, seed)
    for _ in range(int(iterations)):
        split.sweep()
    return [np.column_stack([b, W]) for b, W in zip(split.b, split.W)]
