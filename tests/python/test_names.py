"""The earlier names of errors: the same classes, with a warning that has the present name."""

import mcp_resources
import pytest
from mcp_resources import auth, errors

EARLIER = sorted(mcp_resources._EARLIER)


def test_the_names_that_documents_showed_are_there() -> None:
    assert "ResourceNotFound" in EARLIER
    assert not set(EARLIER) & set(mcp_resources.__all__)


@pytest.mark.parametrize("name", EARLIER)
def test_an_earlier_name_is_the_same_class_and_warns(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"^{name} is now called {name}Error; ") as warned:
        found = getattr(mcp_resources, name)
    assert found is getattr(mcp_resources, f"{name}Error")
    assert warned[0].filename == __file__
    module = auth if name == "InvalidToken" else errors
    with pytest.warns(DeprecationWarning, match="is now called"):
        assert getattr(module, name) is found


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        mcp_resources.Nothing  # type: ignore[attr-defined]  # noqa: B018
