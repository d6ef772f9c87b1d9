"""Two people and a third one on the page, and an answer that is asked again."""

from asked import until
from playwright.sync_api import expect

from .conftest import press, shown


def arrive(visitor, office, name):
    page = visitor.open(office.url)
    page.get_by_label("Your name").fill(name)
    page.keyboard.press("Enter")
    return page


def test_a_third_person_decides_between_two(make_office, visitor):
    office = make_office("labelling.answers_per_question=2")
    office.trainer.ask(1)
    ann, bob = arrive(visitor, office, "Ann"), arrive(visitor, office, "Bob")
    assert shown(ann) == shown(bob) == "e1"
    press(ann, "1", "e1")
    expect(ann.locator("#question")).to_be_hidden()
    press(bob, "2", "e1")
    expect(bob.locator("#question")).to_be_hidden()
    cem = arrive(visitor, office, "Cem")
    assert shown(cem) == "e1"
    press(cem, "2", "e1")
    expect(cem.locator("#question")).to_be_hidden()
    assert office.service.open() == []
    said = [(answer["source"].partition("#")[0], answer["y"]) for answer in office.trainer.answers()]
    assert said == [("page:Ann", True), ("page:Bob", False), ("page:Cem", False)]


def test_an_answer_that_looks_wrong_is_asked_again_without_it(office, visitor):
    office.trainer.ask(1)
    page = visitor.open(office.url)
    press(page, "1", shown(page))
    office.trainer.ask(2, query_id="q2", id="e1", reason="recheck", score=None, margin=0.0)
    until(lambda: len(office.service.open()) == 1)
    assert shown(page) == "e1"
    expect(page.locator("#reason")).to_have_text("Please check again")
    expect(page.locator("#guess")).to_be_hidden()
    press(page, "2", "e1")
    assert office.trainer.labels() == {"e1": False}


def test_a_closed_page_leaves_its_question_to_others(office, visitor):
    office.trainer.ask(1)
    ann = arrive(visitor, office, "Ann")
    assert shown(ann) == "e1"
    bob = arrive(visitor, office, "Bob")
    expect(bob.locator("#question")).to_be_hidden()
    ann.close(run_before_unload=True)
    assert shown(bob) == "e1"  # long before Ann's lease ends
