"""The labelling page with ten classes: questions by keyboard, undo, a new class, two annotators, many classes."""

import pytest
from asked import until
from playwright.sync_api import expect

from .conftest import arrive, press, shown, wait_for

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


def test_classes_are_renamed_merged_and_removed_by_keyboard(make_office_of_classes, visitor):
    office = make_office_of_classes(["owl"], "label.max_classes=5")
    counts = [["owl", 4], ["crow", 3], ["Crow ", 2], ["tern", 1], ["rook", 7]]
    counts[2][0] = "CROW"
    office.trainer.status(classes=counts, labels=17)
    ask(office, [])
    for number in (1, 2, 3):
        office.trainer.ask(number, guess="crow", score=0.5, margin=0.1)
    page = arrive(visitor, office, "Ann")
    assert shown(page) == "e1"
    keys = {"owl": "1", "crow": "2", "CROW": "3", "tern": "4", "rook": "5"}
    for name, key in keys.items():
        expect(page.get_by_role("button", name=f"{name} (key {key})", exact=True)).to_be_visible()
    page.keyboard.press("n")  # there is no room: the letters that follow answer nothing
    page.keyboard.type("125 gulls")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("There is no room for “125 gulls”: 5 classes are the limit")
    page.keyboard.press("Escape")
    press(page, "3", "e1")
    page.keyboard.press("#")
    page.get_by_role("button", name="Merge CROW", exact=True).focus()
    expect(page.locator("#classes-list li").nth(2)).to_contain_text("Is this the same as “crow”?")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#classes-said")).to_have_text("Done: “CROW” was merged into “crow”.")
    page.get_by_role("button", name="Rename tern").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Control+a")
    page.keyboard.type("ROOK")
    page.keyboard.press("Enter")
    expect(page.locator("#classes-said")).to_contain_text("'ROOK' is or was a name of 'rook'")
    page.keyboard.press("Control+a")
    page.keyboard.type("gull")
    page.keyboard.press("Enter")
    expect(page.locator("#classes-said")).to_have_text("Done: “tern” was renamed to “gull”.")
    page.get_by_role("button", name="Remove rook").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Remove rook")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.locator("#classes-said")).to_have_text("Done: “rook” was removed.")
    expect(page.locator("#classes-changes li")).to_have_count(3)
    page.keyboard.press("Escape")
    assert shown(page) == "e2"
    for name, key in {"owl": "1", "crow": "2", "gull": "4"}.items():  # the keys keep their meaning
        expect(page.get_by_role("button", name=f"{name} (key {key})", exact=True)).to_be_visible()
    expect(page.locator("#labels button")).to_have_count(3)
    page.keyboard.press("3")
    page.keyboard.press("5")
    assert shown(page) == "e2"
    press(page, "4", "e2")
    page.keyboard.press("n")
    page.keyboard.type(" OWL")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_have_text("Saved: owl for event e3.")
    records = office.trainer.answers()
    assert [(record["op"], record["from"], record["to"]) for record in records if "from" in record] == [
        ("merge", "CROW", "crow"), ("rename", "tern", "gull"), ("remove", "rook", None),
    ]  # fmt: skip
    assert [record["y"] for record in records if "y" in record] == ["CROW", "gull", "owl"]
    visitor.complaints.clear()  # of the browser, about the name that was refused
    page.keyboard.press("h")
    expect(page.locator("#history-list .given")).to_have_text(["owl", "gull", "CROW (now crow)"])
