"""A slow, literal transcription of the ADMM of Polson, Willard and Heidari (2015).

The paper's notation throughout: layer 1 is the output and layer L reads ``X`` (M x N); ``vec`` stacks
columns, so ``z_l = vec(Z_l)`` stacks observations; every formula is written with its Kronecker products.
Sum scale: ``sum_i loss_i + gamma phi(w)``; ``mu_{i,l}`` weighs the constraint of observation i at layer l.
Misprints are corrected: ``(I - Delta_w) z = Delta_z w``.
"""

import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import brentq


def vec(A):
    return A.reshape(-1, order="F")


class PaperADMM:
    """Z-step, W-step and U-step on dense matrices; ``W[l-1]`` is the paper's W_l with its bias first."""

    def __init__(self, X, Y, W, mu, gamma, penalty, link, slope, majorisations):
        self.X, self.Y, self.W, self.mu, self.gamma = X, Y, W, mu, gamma
        self.penalty, self.link, self.slope, self.majorisations = penalty, link, slope, majorisations
        self.L, self.N = len(W), X.shape[1]
        self.Z = [None] * self.L
        for l in range(self.L, 0, -1):
            self.Z[l - 1] = W[l - 1] @ self.f_tilde(l)
        self.U = [np.zeros_like(Z) for Z in self.Z]

    def f_tilde(self, l):
        """The paper's f~_l(Z_{l+1}): a row of ones over the links, with f_L(Z_{L+1}) = X."""
        reads = self.X if l == self.L else self.link(self.Z[l])
        return np.vstack([np.ones(self.N), reads])

    def delta_w(self):
        """``Delta_w z = z - Omega_w f~(z)``, with Omega_w of blocks ``I_N kron W~_l``."""
        z = np.concatenate([vec(Z) for Z in self.Z])
        omega = block_diag(*(np.kron(np.eye(self.N), W) for W in self.W))
        return z - omega @ np.concatenate([vec(self.f_tilde(l)) for l in range(1, self.L + 1)])

    def delta_z(self):
        """``Delta_z``: the direct sum of ``f~_l(Z_{l+1})' kron I``."""
        sizes = [W.shape[0] for W in self.W]
        return block_diag(*(np.kron(self.f_tilde(l).T, np.eye(n)) for l, n in enumerate(sizes, 1)))

    def sweep(self):
        self.z_step()
        self.w_step()
        self.u_step()

    def z_step(self):
        eta = self.W[0] @ self.f_tilde(1) - self.U[0]
        for i in range(self.N):
            self.Z[0][:, i] = self.loss_prox(eta[:, i], self.Y[:, i], self.mu[0][i])
        for l in range(2, self.L + 1):
            W_below, b = self.W[l - 2][:, 1:], self.W[l - 2][:, 0]
            D = np.abs(W_below.T @ W_below).sum(0)
            c = self.W[l - 1] @ self.f_tilde(l) - self.U[l - 1]
            for i in range(self.N):
                xi = self.Z[l - 2][:, i] + self.U[l - 2][:, i] - b
                for _ in range(self.majorisations):
                    a = self.link(self.Z[l - 1][:, i])
                    target = a + W_below.T @ (xi - W_below @ a) / np.where(D > 0, D, 1)
                    for j in range(len(a)):
                        kappa = self.mu[l - 2][i] * D[j] / self.mu[l - 1][i]
                        self.Z[l - 1][j, i] = self.scalar(c[j, i], target[j], kappa)

    def loss_prox(self, eta, y, mu):
        """Newton on the multinomial loss plus ``mu/2 |s - eta|^2`` with its full Hessian."""
        s = eta.copy()
        for _ in range(100):
            p = np.exp(s - s.max())
            p /= p.sum()
            gradient = p - y + mu * (s - eta)
            s = s - np.linalg.solve(np.diag(p) - np.outer(p, p) + mu * np.eye(len(p)), gradient)
        return s

    def scalar(self, c, q, kappa):
        """The root of ``z - c + kappa (f(z) - q) f'(z)``, unique in the convex regime of the tests."""

        def derivative(z):
            return z - c + kappa * (self.link(z) - q) * self.slope(z)

        reach = 1 + np.sqrt(kappa) * abs(self.link(c) - q)
        return brentq(derivative, c - reach, c + reach, xtol=1e-15, rtol=1e-15)

    def w_step(self):
        for l in range(1, self.L + 1):
            F, W = self.f_tilde(l), self.W[l - 1]
            eye = np.eye(W.shape[0])
            weight = np.diag(self.mu[l - 1])
            Lambda = np.kron(F @ weight @ F.T, eye)
            d = np.kron(F @ weight, eye) @ vec(self.Z[l - 1] + self.U[l - 1])
            w = self.minimise(Lambda, d, vec(W))
            self.W[l - 1] = w.reshape(W.shape, order="F")

    def minimise(self, Lambda, d, w):
        """``argmin w' Lambda w / 2 - d' w + gamma phi(w)``."""
        if self.penalty == "ridge":
            return np.linalg.solve(Lambda + self.gamma * np.eye(len(d)), d)
        step = 1 / np.linalg.norm(Lambda, 2)
        for _ in range(20_000):
            v = w - step * (Lambda @ w - d)
            w = np.sign(v) * np.maximum(np.abs(v) - step * self.gamma, 0)
        # the forward-backward iterations have found the signs; given these the rest is linear
        live, out = w != 0, np.zeros_like(w)
        out[live] = np.linalg.solve(Lambda[np.ix_(live, live)], d[live] - self.gamma * np.sign(w[live]))
        assert (np.sign(out) == np.sign(w)).all()
        assert (np.abs(Lambda @ out - d) <= self.gamma * (1 + 1e-9)).all()
        return out

    def u_step(self):
        u = np.concatenate([vec(U) for U in self.U]) + self.delta_w()
        at = 0
        for l, Z in enumerate(self.Z):
            self.U[l] = u[at : at + Z.size].reshape(Z.shape, order="F")
            at += Z.size
