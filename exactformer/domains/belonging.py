"""The algebra of what belongs to a domain, and a refusal where the domain is of another kind."""

from exactformer.domains.algebra import Algebra
from exactformer.domains.domain import Domain


def algebra_of(domain: Domain) -> Algebra:
    """The domain as an algebra; a ValueError for one of another kind, which has no values and no
    operators.
    """
    if isinstance(domain, Algebra):
        return domain
    raise ValueError(no_algebra(domain))


def no_algebra(domain: Domain) -> str:
    """The message about a domain of another kind, where an algebra is needed."""
    return f"expected an algebra, found {domain.name!r} of the kind {domain.kind}"


class OfDomain:
    """Something that belongs to a domain."""

    domain: Domain

    @property
    def algebra(self) -> Algebra:
        """The domain, which must be an algebra."""
        return algebra_of(self.domain)
