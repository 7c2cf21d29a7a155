"""JAX's cache of compiled programs, in a folder where an entry is read only if it was written there.

JAX's own cache takes whatever file has the right name for the program, and what it loads is native code. It
has no public way to say how entries are read and written, so the function that opens a cache for a folder is
replaced: for this folder it gives ours, for any other what it gave before.
"""

from typing import Any

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache
from jax.extend.backend import get_backend

from deepprox.cache import Doubt, Sealed

ALL_SIZES = -1  # of jax_compilation_cache_max_size: no limit


def keep_in(kept: Sealed) -> None:
    """Let JAX keep all programs in this folder from here on; Doubt, and no cache, if it does not ask us."""
    if jax.config.values["jax_compilation_cache_max_size"] != ALL_SIZES:
        raise Doubt("jax_compilation_cache_max_size is set, and wants jax_compilation_cache_dir set too")
    backend = get_backend()
    jax.config.update("jax_compilation_cache_dir", str(kept.path))
    try:
        ours = _is_asked(kept, backend)
    except Exception:  # of a JAX whose insides are not those that are known here
        ours = False
    if not ours:
        jax.config.update("jax_compilation_cache_dir", None)
        reset_cache()
        raise Doubt(f"JAX {jax.__version__} opens its cache in a way that is not known here")
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    jax.config.update("jax_persistent_cache_enable_xla_caches", None)  # files of XLA's own, without a digest


def _is_asked(kept: Sealed, backend: Any) -> bool:
    """Open the cache of the folder for JAX, look for an entry as JAX does, and say whether we were asked."""
    from jax._src import compilation_cache as programs
    from jax._src.compilation_cache_interface import CacheInterface

    before = programs.get_file_cache

    class Programs(CacheInterface):
        """The entries of this folder, by the names that JAX gives them."""

        _path = kept.path
        asked = False

        def get(self, key: str) -> bytes | None:
            Programs.asked = True
            return kept.read(f"{key}-cache")

        def put(self, key: str, value: bytes) -> None:
            kept.write(f"{key}-cache", value)

    def get_file_cache(path: str) -> Any:
        return (Programs(), path) if path == str(kept.path) else before(path)

    programs.get_file_cache = get_file_cache
    # JAX looks for a cache once, at the first compilation; a program may have compiled before this
    reset_cache()
    programs.is_executable_in_cache(backend, "nothing")
    return Programs.asked
