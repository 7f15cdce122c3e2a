"""Objects with something of the library's that is to be given back once."""

from __future__ import annotations

from typing import Any, SupportsIndex


class Owner:
    """Neither copied nor pickled: the first of two to give it back would leave the other one
    with an address that is no longer there.

    copy.copy, copy.deepcopy and pickle all ask for `__reduce_ex__`.
    """

    _instead = "use the object itself"

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        raise TypeError(
            f"gmb: a {type(self).__name__} can be neither copied nor pickled: {self._instead}"
        )
