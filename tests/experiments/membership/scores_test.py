"""How well members are told from others."""

import numpy as np

from experiments.membership import scores


def test_members_are_found_at_one_false_alarm_in_a_thousand():
    there = np.arange(4000)[None] < 2000
    score = np.zeros((1, 4000))
    score[0, :500], score[0, 2000:2002], score[0, 500:1000] = 3, 2, 1
    score[0, 2002:2010] = 1  # ten alarms in two thousand
    assert scores.rates(score, there).found == 25


def test_a_score_without_end_is_first_and_no_number_last():
    there = np.array([[True, True, False, False]])
    for score in ([np.inf, 2, 1, -np.inf], [2.0, 1, np.nan, 0]):
        assert scores.rates(np.array([score]), there)[:2] == (1.0, 100.0)


def test_what_chance_finds_is_of_those_who_were_not_there():
    there = np.arange(40)[None] < 20
    found = scores.rates(np.zeros((1, 40)), there)
    assert found.by_chance == 100 / 21
