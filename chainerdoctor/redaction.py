"""Make a snapshot that can be shown to strangers: names are replaced, the same name always by the same word."""

from __future__ import annotations

import json
import re
from typing import Dict, List, Set, Tuple

from chainerdoctor import snapshot as snapshots
from chainerdoctor.facts.fabric import NetworkInterface
from chainerdoctor.facts.host import Boot, OperatingSystem
from chainerdoctor.facts.mpi import MpiWorld
from chainerdoctor.snapshot import Snapshot

_HOME = re.compile(r"/(?:home|Users|users|home\d+)/([A-Za-z0-9._-]+)")


def redacted(snapshot: Snapshot) -> Snapshot:
    """The snapshot with host names (``host1``), users (``user1``), addresses and boot ids replaced consistently.

    Replacement works on the whole text, so that a host name inside an error message goes, too. Loopback stays.
    """
    text = snapshot.dumps()
    words = dict(_words(snapshot, text))
    # Longer names first: node1 must not be replaced inside node12, nor a short name inside its full one.
    for name in sorted(words, key=lambda word: (-len(word), word)):
        pattern = re.escape(json.dumps(name)[1:-1])
        text = re.sub(rf"(?<![A-Za-z0-9_.-]){pattern}(?![A-Za-z0-9_-])", words[name], text)
    return snapshots.loads(text)


def _words(snapshot: Snapshot, text: str) -> List[Tuple[str, str]]:
    hosts: Dict[str, None] = dict.fromkeys(snapshot.nodes)
    hosts.update(dict.fromkeys(seen.fact.hostname for seen in snapshot.all(OperatingSystem)))
    hosts.update(dict.fromkeys(seen.fact.processor_name for seen in snapshot.all(MpiWorld)))
    short = dict.fromkeys(name.split(".")[0] for name in hosts)
    pairs = [(name, f"host{number}") for number, name in enumerate({**hosts, **short}, 1) if name]
    users: Set[str] = set(_HOME.findall(text))
    pairs += [(name, f"user{number}") for number, name in enumerate(sorted(users), 1)]
    addresses = dict.fromkeys(a for seen in snapshot.all(NetworkInterface) for a in seen.fact.addresses)
    outside = [a for a in addresses if not a.startswith("127.") and a != "::1"]
    pairs += [(address, f"address{number}") for number, address in enumerate(outside, 1)]
    boots = dict.fromkeys(seen.fact.boot_id for seen in snapshot.all(Boot))
    return pairs + [(boot, f"boot{number}") for number, boot in enumerate(boots, 1)]
