"""Near-duplicates on the page: one answer for all of them, or for the event that is shown."""

from playwright.sync_api import expect

from .conftest import press, shown, wait_for

ALIKE = [{"query_id": f"r{number}", "id": f"r{number}"} for number in range(3)]


def test_one_answer_for_all_of_them_or_for_one_alone(office, visitor):
    office.trainer.ask(1, alike=ALIKE, event={"text": "You won a prize, call us"})
    page = visitor.open(office.url)
    assert shown(page) == "e1"
    expect(page.locator("#alike-block")).to_contain_text("Also for 3 like it")
    press(page, "1", "e1")
    expect(page.locator("#said")).to_have_text("Saved: fraud for event e1 and those like it.")
    assert office.trainer.labels() == dict.fromkeys(("e1", "r0", "r1", "r2"), True)
    wait_for(page, "!isBusy && undoable")
    page.keyboard.press("u")
    wait_for(page, "!isBusy && shown && shown.id === 'e1'")
    assert office.trainer.labels() == {}
    page.keyboard.press("+")
    expect(page.locator("#alike")).not_to_be_checked()
    press(page, "2", "e1")
    assert office.trainer.labels() == {"e1": False}
    office.trainer.ask(2, alike=ALIKE[:1])
    assert shown(page) == "e2"
    expect(page.locator("#alike-block")).to_contain_text("Also for 1 like it")
    expect(page.locator("#alike")).not_to_be_checked()  # the page remembers it
    press(page, "1", "e2")
    office.trainer.ask(3)
    assert shown(page) == "e3"
    expect(page.locator("#alike-block")).to_be_hidden()


def test_those_that_are_only_almost_the_same_are_a_suggestion_each_time(office, visitor):
    for number in (1, 2):
        office.trainer.ask(number, alike=[ALIKE[number]], almost=True, event={"text": f"Order {number} was refused"})
    page = visitor.open(office.url)
    assert shown(page) == "e1"
    expect(page.locator("#alike-block")).to_contain_text("Also for 1 almost like it")
    expect(page.locator("#alike")).not_to_be_checked()
    page.keyboard.press("+")
    expect(page.locator("#alike")).to_be_checked()
    press(page, "1", "e1")
    assert shown(page) == "e2"
    expect(page.locator("#alike")).not_to_be_checked()
    press(page, "2", "e2")
    assert office.trainer.labels() == {"e1": True, "r1": True, "e2": False}
    office.trainer.ask(3, alike=ALIKE[:1])
    assert shown(page) == "e3"
    expect(page.locator("#alike")).to_be_checked()
