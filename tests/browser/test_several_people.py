"""Two people and a third one on the page, and an answer that is asked again."""

import json

from asked import until
from patience import Patience
from playwright.sync_api import expect

from streamsvm.connectors.logs.embedded import LocalLog

from .conftest import arrive, press, shown, wait_for


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
    expect(cem.locator("#reason")).to_have_text("Please decide")
    expect(cem.locator("#because")).to_contain_text("Theirs are not shown")
    assert "Ann" not in cem.locator("main").text_content()
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
    origin = office.url.partition("/#")[0]
    ann, bob = (
        visitor.context(
            storage_state={
                "origins": [{"origin": origin, "localStorage": [{"name": "streamsvm.name", "value": json.dumps(name)}]}]
            }
        )
        for name in ("Ann", "Bob")
    )
    ann = visitor.open(office.url, ann)
    assert shown(ann) == "e1"
    bob = visitor.open(office.url, bob)
    wait_for(bob, "!isBusy")
    expect(bob.locator("#question")).to_be_hidden()
    expect(bob.get_by_label("Your name")).to_have_value("Bob")
    patience = Patience(8)
    ann.close(run_before_unload=True)
    assert shown(bob) == "e1"  # long before Ann's lease, or his own request, ends
    assert patience.lasts


def test_a_second_annotator_has_an_event_while_the_first_has_the_only_question(office, visitor):
    with LocalLog(office.settings.log.dir) as log:
        for number in range(5):
            event = {"id": f"r{number}", "x": {"amount": float(number)}, "text": f"letter {number}"}
            log.produce("events", json.dumps(event).encode(), partition=0)
    office.trainer.ask(1)
    ann = arrive(visitor, office, "Ann")
    assert shown(ann) == "e1"
    bob = arrive(visitor, office, "Bob")
    patience = Patience(8)  # he would wait for 15 seconds
    event = shown(bob)
    assert event.startswith("r")
    assert patience.lasts
    expect(bob.locator("#reason")).to_have_text("Meanwhile")
    expect(bob.locator("#guess")).to_be_hidden()
    office.trainer.ask(2)  # it waits until he has answered
    until(lambda: len(office.service.open()) == 2)
    answered = []
    while (event := shown(bob)) != "e2":  # at most two: a nameless tab had another event at first
        press(bob, "2", event)
        answered.append(event)
    assert office.trainer.labels() == dict.fromkeys(answered, False)
    assert 1 <= len(answered) <= 2


def test_two_tabs_without_a_name_are_one_person_and_a_slow_server_is_named(office, visitor):
    for number in (1, 2):
        office.trainer.ask(number)
    context = visitor.context()
    is_silent = False
    handlers = {"**/api/answer": lambda route: None if is_silent else route.continue_()}
    first, second = (visitor.open(office.url, context, handlers) for _ in range(2))
    for page, event in [(page, shown(page)) for page in (first, second)]:  # both have one before the first is answered
        press(page, "1", event)
    assert len({answer["source"].partition("#")[0] for answer in office.trainer.answers()}) == 1
    for number in (3, 4):  # one for each tab
        office.trainer.ask(number)
    shown(first)
    is_silent = True  # no reply ever comes
    first.keyboard.press("1")
    expect(first.get_by_role("alert")).to_contain_text("The server has not answered yet.")


def test_a_lead_decides_disagreements_by_keyboard(make_office, visitor):
    office = make_office("labelling.answers_per_question=2")
    for number in (1, 2, 3):
        office.trainer.ask(number, event={"text": f"letter {number}"})
    ann, bob = arrive(visitor, office, "Ann"), arrive(visitor, office, "Bob")
    for key_of_ann, key_of_bob in ("12", "11", "21"):
        event = shown(ann)
        press(ann, key_of_ann, event)
        assert shown(bob) == event
        press(bob, key_of_bob, event)
    lead = arrive(visitor, office, "Lea")
    assert shown(lead) == "e1"
    expect(lead.get_by_role("button", name="Review doubtful answers (2)")).to_be_visible()
    lead.keyboard.press("q")
    items = lead.locator("#disputes-list li")
    expect(items).to_have_count(2)
    expect(items.first).to_contain_text("event e3")
    expect(items.first).to_contain_text("Ann: genuine · Bob: fraud")
    expect(items.first.get_by_role("button")).to_be_focused()
    lead.keyboard.press("Enter")
    expect(lead.locator("#reviewed-text")).to_contain_text("Ann: genuine · Bob: fraud. Your answer decides")
    expect(lead.locator("#text")).to_have_text("letter 3")
    lead.keyboard.press("1")
    expect(items).to_have_count(1)  # the next one
    expect(lead.locator("#said")).to_have_text("Decided: event e3 is fraud.")
    lead.keyboard.press("Enter")
    expect(lead.locator("#reviewed-text")).to_contain_text("Ann: fraud · Bob: genuine. Your answer decides")
    expect(lead.locator("#text")).to_have_text("letter 1")
    lead.keyboard.press("Escape")
    expect(lead.locator("#reviewed")).to_be_hidden()
    assert [question.id for question in office.service.open()] == ["e1"]
    decided = office.trainer.answers()[-1]
    assert (decided["op"], decided["y"], decided["query_id"]) == ("decide", True, "q3")
    wait_for(lead, "!isBusy")
    lead.keyboard.press("u")
    until(lambda: office.trainer.answers()[-1]["op"] == "retract")
    until(lambda: {question.id for question in office.service.open()} == {"e1", "e3"})
    assert office.service.stats()["disputes"] == 2


def test_the_model_s_doubts_are_reviewed_with_the_names(office, visitor):
    office.trainer.ask(1)
    ann = arrive(visitor, office, "Ann")
    press(ann, "1", shown(ann))
    office.trainer.ask(2, query_id="events-0-1-recheck", id="e1", reason="recheck", score=None, margin=0.0)
    page = arrive(visitor, office, "Lea")
    until(lambda: len(office.service.open()) == 1)
    until(lambda: office.service.stats()["disputes"] == 1)
    page.keyboard.press("q")
    expect(page.locator("#disputes-list li")).to_contain_text("The model contradicts this answer.Ann: fraud")
    page.keyboard.press("Enter")
    expect(page.locator("#reviewed-text")).to_contain_text("The model contradicts this answer. Ann: fraud")
    page.keyboard.press("2")
    until(lambda: office.trainer.answers()[-1]["op"] == "decide")
    assert office.trainer.answers()[-1]["y"] is False
