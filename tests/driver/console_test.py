"""Progress where nobody sees a bar."""

import time

from fljax.driver import console


def test_where_nobody_sees_a_bar_progress_is_lines(capsys, monkeypatch):
    seconds = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: seconds[0])
    with console.progress() as bars:
        task = bars.add_task("rounds ", total=4)
        bars.update(task, completed=1)
        seconds[0] = 61.0
        bars.advance(task)
        bars.advance(task)
        bars.advance(task)
        hidden = bars.add_task("clips", total=1, visible=False)
        bars.advance(hidden)
    said = capsys.readouterr().err.splitlines()
    assert said == ["rounds: 2 of 4, 61 s, about 122 s left", "rounds: 4 of 4, 61 s"]


def test_a_line_says_how_long_the_rest_takes(capsys, monkeypatch):
    seconds = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: seconds[0])
    with console.progress() as bars:
        task = bars.add_task("rounds", total=100)
        bars.update(task, completed=40)  # what a checkpoint had
        for done in (41, 42, 43):
            seconds[0] += 61.0
            bars.update(task, completed=done)
    assert capsys.readouterr().err.splitlines() == [
        "rounds: 41 of 100, 61 s, about 3599 s left",
        "rounds: 42 of 100, 122 s, about 3538 s left",
        "rounds: 43 of 100, 183 s, about 3477 s left",
    ]


def test_a_command_is_never_broken(capsys):
    shown = console.command(f"python -m experiments.aia {'--flag=value ' * 30}")
    assert console.is_command(shown) and not console.is_command("words")
    console.screen().print(shown, soft_wrap=True)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split() == shown.plain.split()


def test_a_long_wait_is_explained_and_a_short_one_is_not(capsys, monkeypatch):
    with console.waiting("data"):
        pass
    monkeypatch.setattr(console, "_PATIENCE", 0.01)
    with console.waiting("schedule"):
        time.sleep(0.3)
    assert capsys.readouterr().err == "schedule: still at work after 0.01 s\n"
