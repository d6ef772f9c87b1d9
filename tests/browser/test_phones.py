"""A phone with ten classes: the answers and open instructions leave at least half of the image in sight."""

import pytest

from .conftest import shown, wait_for
from .test_appearance import picture
from .test_classes import several

PHONES = [(320, 568), (360, 640), (360, 740), (375, 667), (390, 844), (412, 915), (430, 932)]
GUIDE = "labelling.instructions=Look at the animal. Doubtful? Skip it.\n\n" + "- A long rule about ears.\n" * 20
DIGITS, BIRDS = [str(n) for n in range(10)], [f"a bird of the kind {n}" for n in range(10)]

# Of the image: the share that is in the window and not behind the answers; and whether the page has room for all.
IN_SIGHT = """() => {
  const box = (id) => document.getElementById(id).getBoundingClientRect(), image = box("image");
  const end = Math.min(innerHeight, box("answer").top, box("frame").bottom);
  return [(end - Math.max(0, image.top)) / image.height, image.height, document.documentElement.scrollWidth];
}"""


@pytest.fixture
def offices(make_office, monkeypatch):
    import asked

    plain = asked.CONFIG

    def make(classes):
        names = 'positive = "fraud"\nnegative = "genuine"\n'
        monkeypatch.setattr(asked, "CONFIG", plain.replace(names, "") if classes else plain)
        return several(make_office, classes, "label.max_classes=20", GUIDE) if classes else make_office(GUIDE)

    return make


@pytest.mark.parametrize("classes", [[], DIGITS, BIRDS], ids=["two", "digits", "birds"])
def test_half_of_the_image_is_in_sight(classes, offices, visitor):
    office = offices(classes)
    guess = {"guess": 3 if classes == DIGITS else classes[3], "score": 0.1, "margin": 0.25} if classes else {}
    for number in (1, 2):
        office.trainer.ask(number, event={"image": picture(400), "text": "a note " * 30}, **guess)
    context = visitor.context(is_mobile=True, has_touch=True, device_scale_factor=2)
    page = visitor.open(office.url, context)
    for turn in range(2):  # with the sentence about an answer, too
        event = shown(page)
        for width, height in PHONES:
            page.set_viewport_size({"width": width, "height": height})
            wait_for(page, "$('image').style.width && $('guide').open")  # the image has come, and has its place
            page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            share, tall, wide = page.evaluate(IN_SIGHT)
            assert share >= 0.5, (width, height, share)
            assert tall >= 105
            assert wide <= width
            for button in page.locator("#answer .others button").all():
                box = button.bounding_box()
                assert min(box["width"], box["height"]) >= 44, box
        page.locator("#labels button").first.click()
        if turn == 0:
            wait_for(page, "!isBusy && shown && shown.id !== known", event)
