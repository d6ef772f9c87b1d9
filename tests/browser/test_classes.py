"""The labelling page with ten classes: questions by keyboard, undo, a new class, two annotators, many classes."""

import pytest
from asked import until
from playwright.sync_api import expect

from .conftest import press, shown, wait_for

TEN = [f"class {name}" for name in "ABCDEFGHIJ"]


def several(make_office, classes=TEN, *overrides):
    listed = ", ".join(f'"{name}"' for name in classes)
    overrides = overrides or ("label.max_classes=60",)
    return make_office(f"label.classes=[{listed}]", *overrides)


@pytest.fixture
def make_office_of_classes(make_office, monkeypatch):
    """An office without the names of two classes that `asked` has."""
    import asked

    monkeypatch.setattr(asked, "CONFIG", asked.CONFIG.replace('positive = "fraud"\nnegative = "genuine"\n', ""))
    return lambda *given: several(make_office, *given)


def ask(office, numbers):
    for number in numbers:
        sure = dict.fromkeys(TEN, 0.0) | {"class B": 0.75, "class C": 0.25}
        office.trainer.ask(number, guess="class B", probabilities=sure, score=0.75, margin=0.25)


def arrive(visitor, office, name):
    page = visitor.open(office.url)
    page.get_by_label("Your name").fill(name)
    page.keyboard.press("Enter")
    return page


def test_thirty_questions_by_keyboard_undo_and_a_new_class(make_office_of_classes, visitor):
    office = make_office_of_classes()
    ask(office, range(31))
    page = visitor.open(office.url)
    shown(page)
    expect(page.locator("#labels button")).to_have_count(10)
    expect(page.locator("#labels button").nth(9)).to_have_accessible_name("class J (key A)")
    expect(page.locator("#opinion")).to_have_text("class B, 75 % sure")
    given = {}
    for number in range(29):
        event, key = shown(page), "123456789a"[number % 10]
        press(page, key, event)
        given[event] = TEN[number % 10]
    wrong = shown(page)
    press(page, "1", wrong)
    page.keyboard.press("u")
    wait_for(page, "!isBusy && shown && shown.id === known", wrong)
    page.keyboard.press("n")
    page.keyboard.type("class X")
    page.keyboard.press("Enter")
    wait_for(page, "!isBusy && (!shown || shown.id !== known)", wrong)
    given[wrong] = "class X"
    until(lambda: office.trainer.labels() == given)
    assert len(given) == 30
    office.trainer.status(classes=[[name, 3] for name in [*TEN, "class X"]], labels=33)
    expect(page.locator("#labels button")).to_have_count(11)
    expect(page.locator("#n-pos")).to_contain_text("class X: 3")
    last = shown(page)
    press(page, "b", last)
    until(lambda: office.trainer.labels()[last] == "class X")
    page.keyboard.press("h")
    expect(page.locator("#history-list .given").first).to_have_text("class X")


def test_two_annotators_choose_among_classes(make_office_of_classes, visitor):
    office = make_office_of_classes(TEN, "labelling.answers_per_question=2")
    ask(office, [1])
    ann, bob = arrive(visitor, office, "Ann"), arrive(visitor, office, "Bob")
    assert shown(ann) == shown(bob) == "e1"
    expect(ann.locator("#find")).to_be_hidden()
    press(ann, "3", "e1")
    press(bob, "3", "e1")
    expect(bob.locator("#question")).to_be_hidden()
    assert office.service.open() == []
    said = [(answer["source"].partition("#")[0], answer["y"]) for answer in office.trainer.answers()]
    assert said == [("page:Ann", "class C"), ("page:Bob", "class C")]


def test_more_than_twenty_classes_are_searched(make_office_of_classes, visitor):
    office = make_office_of_classes([f"bird {number}" for number in range(40)], "label.max_classes=40")
    ask(office, [1, 2])
    page = visitor.open(office.url)
    first = shown(page)
    page.keyboard.press("n")
    page.keyboard.type("bird 37")
    expect(page.locator("#labels button").locator("visible=true")).to_have_count(1)
    page.keyboard.press("Enter")
    wait_for(page, "!isBusy && (!shown || shown.id !== known)", first)
    until(lambda: office.trainer.labels() == {first: "bird 37"})
    second = shown(page)
    page.keyboard.press("n")
    page.keyboard.type("fish")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_have_text("There is no class “fish”.")
    page.keyboard.press("Escape")
    assert shown(page) == second
