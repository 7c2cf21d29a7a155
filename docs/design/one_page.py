"""The method on one page: ADMM, the proximal quasi-Newton method and the certificate, in plain NumPy.

A network maps x to z_1 = W_1 [1, x], z_2 = W_2 [1, f(z_1)] and so on; the last z is eta. Column 0 of every W
holds biases, which cost nothing. Over all weights we minimise

    objective(W) = 1/n sum_i loss(eta_i, y_i) + alpha sum_l |W_l|_1

1. Split (ADMM). Every z_l is a variable, and z_l = W_l F_l with F_l = [1, f(z_{l-1})] is asked for by a term
   rho_l/2 |z_l - W_l F_l + u_l|^2 in the mean. Take turns: the best Z given W (Z-step), the best W given Z,
   a lasso for every layer (W-step), and U adds up what the constraints still miss (U-step).
2. Join. From the weights of ADMM, quasi-Newton steps on the objective itself, with exact zeros.
3. Certify. A point is stationary where w = prox(w - gradient): the certificate is how much that misses.

The library, compared in tests/oracles/test_one_page.py, adds vocabulary, starts, Newton steps and speed.
"""

from typing import NamedTuple

import numpy as np


class Problem(NamedTuple):
    """The data, a row for each observation (classes as 0/1 columns of y), and what is minimised."""

    X: np.ndarray
    y: np.ndarray
    alpha: float
    activation: str = "tanh"  # or "relu"
    loss: str = "squared"  # or "softmax"

    def act(self, z):
        """The activation f(z) and its derivative."""
        tanh = np.tanh(z)
        return (tanh, 1 - tanh**2) if self.activation == "tanh" else (np.maximum(z, 0), 1.0 * (z > 0))

    def losses(self, eta):
        """The loss of every observation and its derivative in eta."""
        if self.loss == "squared":
            return ((eta - self.y) ** 2).sum(1) / 2, eta - self.y
        log_sum = np.logaddexp.reduce(eta, axis=1)
        return log_sum - (self.y * eta).sum(1), np.exp(eta - log_sum[:, None]) - self.y

    def features(self, Z):
        """What the layers read: F_1 = [1, X], then F_l = [1, f(z_{l-1})]."""
        return [np.insert(reads, 0, 1, axis=1) for reads in [self.X, *(self.act(z)[0] for z in Z)]]

    def forward(self, W):
        """z_1, ..., z_L = eta."""
        Z = []
        for w in W:
            Z.append(self.features(Z)[-1] @ w.T)
        return Z

    def level(self, w):
        """The penalty level of every weight of a layer: 0 for biases."""
        return self.alpha * (np.arange(w.shape[1]) > 0) + np.zeros(w.shape)

    def objective(self, W):
        """The objective, and the gradient of the mean loss by back-propagation."""
        Z, G = self.forward(W), []
        mean_loss, delta = (part / len(self.X) for part in self.losses(Z[-1]))
        for l in reversed(range(len(W))):
            G.insert(0, delta.T @ self.features(Z)[l])
            delta = delta @ W[l][:, 1:] * self.act(Z[l - 1])[1] if l else None
        return mean_loss.sum() + sum((self.level(w) * np.abs(w)).sum() for w in W), G


def soft(v, level):
    """The prox of level |w| at v: towards zero by ``level``, and exactly zero from no further away."""
    return np.sign(v) * np.maximum(np.abs(v) - level, 0)


def z_step(p, W, Z, U, rho, rounds=3):
    """The best Z given W, from output to input; what couples entries is replaced by a quadratic above it."""
    Z, centres = list(Z), [f @ w.T - u for f, w, u in zip(p.features(Z), W, U)]
    for _ in range(1000):  # loss(z) + rho/2 |z - centre|^2; the second derivative of the loss is at most 1
        Z[-1] = Z[-1] - (p.losses(Z[-1])[1] + rho[-1] * (Z[-1] - centres[-1])) / (1 + rho[-1])
    for l in reversed(range(len(W) - 1)):  # ratio/2 |target - V f(z)|^2 + 1/2 |z - centre|^2
        V, target, ratio = W[l + 1][:, 1:], Z[l + 1] + U[l + 1] - W[l + 1][:, 0], rho[l + 1] / rho[l]
        D = np.abs(V.T @ V).sum(0)  # a diagonal matrix above V'V
        for _ in range(rounds):
            a = p.act(Z[l])[0]
            q = a + (target - a @ V.T) @ V / np.where(D > 0, D, 1)
            Z[l] = scalar(p, Z[l], centres[l], q, ratio * D)
    return Z


def scalar(p, z, c, q, kappa):
    """For every entry the z that minimises (z - c)^2 / 2 + kappa/2 (f(z) - q)^2."""
    if p.activation == "relu":  # the best z above zero or the best below, by the sign of the difference
        above, below = np.maximum((c + kappa * q) / (1 + kappa), 0), np.minimum(c, 0)
        lower = (below - c) ** 2 + kappa * q**2 < (above - c) ** 2 + kappa * (above - q) ** 2
        return np.where(lower, below, above)
    bound = 1 + kappa * (1.77 + 0.77 * np.abs(q))  # on the second derivative, since |tanh''| < 0.77
    for _ in range(1000):
        z = z - (z - c + kappa * (np.tanh(z) - q) * p.act(z)[1]) / bound
    return z


def w_step(p, w, F, target, rho, cycles=1000):
    """The best W of a layer given Z: the lasso of ``target`` on F, by coordinate descent over columns."""
    S, C, level, w = rho * F.T @ F / len(F), rho * target.T @ F / len(F), p.level(w), w.copy()
    w[:, S.diagonal() == 0] = 0  # nothing is read there
    for j in list(np.flatnonzero(S.diagonal())) * cycles:
        w[:, j] = soft(C[:, j] - w @ S[:, j] + w[:, j] * S[j, j], level[:, j]) / S[j, j]
    return w


def admm(p, W, rho, sweeps=40, growth=1.02):
    """Sweeps of Z-step, W-step and U-step from the forward pass; rho grows, and the dual rho U is kept."""
    Z = p.forward(W)
    U = [np.zeros_like(z) for z in Z]
    for _ in range(sweeps):
        Z = z_step(p, W, Z, U, rho)
        F = p.features(Z)
        W = [w_step(p, w, f, z + u, r) for w, f, z, u, r in zip(W, F, Z, U, rho)]
        U = [(u + z - f @ w.T) / growth for u, z, f, w in zip(U, Z, F, W)]
        rho = [growth * r for r in rho]
    return W, Z, U


def certificate(p, W):
    """The largest entry of w - prox(w - gradient): zero at a stationary point, and only there."""
    return max(np.abs(w - soft(w - g, p.level(w))).max() for w, g in zip(W, p.objective(W)[1]))


def quasi_newton(p, W, tol=1e-8, steps=1000):
    """BFGS on all weights, where one that would change its sign stops at zero (Andrew and Gao 2007)."""
    cuts, shapes = np.cumsum([w.size for w in W])[:-1], [w.shape for w in W]
    vector = lambda parts: np.concatenate([part.ravel() for part in parts])  # noqa: E731
    layers = lambda w: [part.reshape(shape) for part, shape in zip(np.split(w, cuts), shapes)]  # noqa: E731
    w, level, (value, G) = vector(W), vector(map(p.level, W)), p.objective(W)
    g, H = vector(G), np.eye(len(w))  # H approximates the inverse of the second derivatives of the loss
    for _ in range(steps):
        if certificate(p, layers(w)) <= tol:
            break
        r = np.where(w == 0, soft(g, level), g + level * np.sign(w))  # the subgradient of least size
        d = np.where((w == 0) & ((H @ r) * r <= 0), 0, -H @ r)  # a zero moves downhill or stays
        d, side = d if d @ r < 0 else -r, np.where(w == 0, -r, w)
        for t in 0.5 ** np.arange(40):  # the first of the full step, its half, ... that lowers the objective
            new = np.where((level > 0) & ((w + t * d) * side <= 0), 0, w + t * d)
            after, G = p.objective(layers(new))
            if after <= value + 1e-4 * r @ (new - w) + 1e-15 * abs(value):
                break
        s, y = new - w, vector(G) - g
        if s @ y > 1e-10 * s @ s:
            V = np.eye(len(w)) - np.outer(s, y) / (s @ y)
            H = V @ H @ V.T + np.outer(s, s) / (s @ y)
        w, value, g = new, after, vector(G)
    return layers(w)
