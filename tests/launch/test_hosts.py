"""Host lists and hostfiles: both dialects, and one clear line for everything else."""

import pytest

from chainerdoctor.launch.hosts import HostsError, Slots, parse_hostfile, parse_hosts, place


def test_list() -> None:
    assert parse_hosts("a,b:4, c.example.org:2") == (Slots("a", 1), Slots("b", 4), Slots("c.example.org", 2))


def test_both_dialects_of_hostfiles() -> None:
    text = "# nodes\nn1 slots=4 max_slots=8\nn2:2   # MPICH\n\nn3\nn1 slots=1\n"
    assert parse_hostfile(text, "f") == (Slots("n1", 5), Slots("n2", 2), Slots("n3", 1))


@pytest.mark.parametrize(
    "text", ["", "a,,b", "a:0", "a:x", "a b", "-oProxyCommand=evil", "a;rm -rf /", "a:99999999999"]
)
def test_bad_lists(text: str) -> None:
    with pytest.raises(HostsError, match="--hosts, entry"):
        parse_hosts(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no host in it"),
        ("# only a comment\n", "no host in it"),
        ("n1\nn2 slots=two\n", "line 2"),
        ("n1 cpus=4\n", "line 1.*only slots="),
        ("\x7fELF\x02\x01", "line 1"),
        ("n1 slots=4 n2\n", "line 1"),
    ],
)
def test_bad_hostfiles_name_the_line(text: str, words: str) -> None:
    with pytest.raises(HostsError, match=words) as caught:
        parse_hostfile(text, "my.hosts")
    assert "my.hosts" in str(caught.value)


def test_placing_fills_in_order_and_refuses_too_many() -> None:
    hosts = (Slots("a", 2), Slots("b", 2))
    assert place(hosts, 3) == (Slots("a", 2), Slots("b", 1))
    assert place(hosts, None) == hosts
    assert place(hosts, 2) == (Slots("a", 2),)
    with pytest.raises(HostsError, match="5 ranks were asked for and the hosts have 4 slots"):
        place(hosts, 5)
