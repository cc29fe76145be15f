"""Diagnostic reports of the size that phones write: some 450 processes, some 450 images."""

from __future__ import annotations

from tests.evidence.factory import APP, NOON, crash, jetsam, process

PROCESSES = 450
IMAGES = 450
THREADS = 24
FRAMES = 30
REGISTERS = 29


def full_jetsam(processes: int = PROCESSES) -> bytes:
    """Return a JetsamEvent whose victim stands in the middle of the list."""
    entries = [_alive(number) for number in range(processes)]
    entries.insert(processes // 2, process(killDelta=11529, age=33))
    memory = {"pageSize": 16384, "memoryPages": {"active": 90000, "free": 2000, "wired": 40000}}
    return jetsam(
        *entries, largestProcess=APP, date=NOON, product="iPhone14,7", memoryStatus=memory
    )


def full_crash(images: int = IMAGES) -> bytes:
    """Return a crash report of a process with many threads."""
    return crash(
        threads=[_thread(number) for number in range(THREADS)],
        usedImages=[_image(number) for number in range(images)],
        faultingThread=0,
        captureTime=NOON,
        termination={"namespace": "SIGNAL", "code": 6, "indicator": "Abort trap: 6"},
    )


def _alive(number: int) -> dict[str, object]:
    entry = process(
        f"daemon{number}",
        pid=number + 10,
        uuid=_uuid(number),
        rpages=100 + number * 7,
        states=["daemon", "idle"],
        age=123456789 + number,
        fds=50,
        coalition=number + 80,
        cpuTime=1.25 * number,
        lifetimeMax=2000 + number,
        mem_regions=100 + number,
        physicalPages={"internal": [number * 3, number * 5]},
    )
    del entry["reason"]
    return entry


def _thread(number: int) -> dict[str, object]:
    state = {"x": [{"value": register * 4096} for register in range(REGISTERS)]}
    frames = [
        {
            "imageOffset": 1000 * frame,
            "symbol": f"_a_symbol_of_usual_length_{frame}",
            "symbolLocation": frame,
            "imageIndex": frame % 5,
        }
        for frame in range(FRAMES)
    ]
    return {
        "id": 1000 + number,
        "triggered": number == 0,
        "threadState": state,
        "frames": frames,
    }


def _image(number: int) -> dict[str, object]:
    return {
        "source": "P",
        "arch": "arm64e",
        "base": 4294967296 + number * 65536,
        "size": 65536,
        "uuid": _uuid(number),
        "path": f"/System/Library/Frameworks/F{number}.framework/F{number}",
        "name": f"F{number}",
    }


def _uuid(number: int) -> str:
    return f"{number:08x}-6940-51e6-9c8f-f26318c57766"
