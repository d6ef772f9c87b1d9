"""The objects of a partition: of two writers one hears of the other, and a number that is free again does no harm."""

import urllib.request

import pytest

from streamsvm.connectors.logs.segments import LogCorruption
from streamsvm.connectors.logs.transport import AccessDenied, OptionRefused, TakenOver, TopicMismatch, Unavailable
from streamsvm.connectors.trainer.state.remote.objects import ObjectPlace, open_objects

obstore = pytest.importorskip("obstore")


@pytest.fixture(scope="module")
def s3():
    """A small server that speaks S3's protocol, with a bucket; its port."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    port = server.get_host_and_port()[1]
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/bucket", method="PUT")).close()
    yield port
    server.stop()


@pytest.fixture(params=["memory", "folder", "s3"])
def store(request, tmp_path, monkeypatch):
    if request.param == "memory":
        return obstore.store.MemoryStore()
    if request.param == "folder":
        return open_objects(f"file://{tmp_path}/bucket")
    return s3_store(request.getfixturevalue("s3"), monkeypatch, f"bucket/{tmp_path.name}")


def s3_store(port, monkeypatch, where, **more):
    environment = {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "DEFAULT_REGION": "us-east-1", "ALLOW_HTTP": "true"}
    environment["ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
    for name, value in {**environment, **more}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    return open_objects(f"s3://{where}")


def open_place(store):
    place = ObjectPlace(store, "p0", "partition 0 of 'x'")
    list(place.records(0))
    return place


def write(place, *keys):
    for key in keys:
        place.append(key, b"value of " + key)
    place.flush()


def keys(place, start=0):
    return [record.key for record in place.records(start)]


def test_each_flush_writes_one_object(store):
    place = open_place(store)
    write(place, b"a", b"b")
    write(place, b"c")
    write(place)
    assert [(r.offset, r.key, r.value) for r in open_place(store).records(0)] == [
        (0, b"a", b"value of a"),
        (0, b"b", b"value of b"),
        (1, b"c", b"value of c"),
    ]
    assert place.next == place.end() == 2
    assert keys(place, start=1) == [b"c"]


def test_of_two_that_write_at_once_one_is_told(store):
    first, second = open_place(store), open_place(store)
    write(first, b"a")
    with pytest.raises(TakenOver, match="partition 0 of 'x' belongs to another process"):
        write(second, b"b")
    assert keys(second) == [b"a"]
    write(second, b"c")
    assert keys(first) == [b"a", b"c"]


def test_a_number_that_is_free_again_does_no_harm(store):
    """A process slept while another one removed what it had read."""
    place = open_place(store)
    for key in (b"a", b"b"):
        write(place, key)
    sleeper = open_place(store)
    for key in (b"c", b"d", b"e"):
        write(place, key)
    place.trim(3)
    write(sleeper, b"late")
    assert sleeper.end() != sleeper.next  # So it looks, and finds another owner.
    assert keys(open_place(store)) == [b"d", b"e"]
    write(place, b"f")
    assert keys(open_place(store)) == [b"d", b"e", b"f"]


def test_an_object_that_was_written_although_the_answer_was_lost_is_not_written_twice(store, monkeypatch):
    place = open_place(store)
    create, is_lost = place._create, iter([True])

    def lose(number, content):
        is_new = create(number, content)
        if next(is_lost, False):
            raise Unavailable("timed out")
        return is_new

    monkeypatch.setattr(place, "_create", lose)
    with pytest.raises(Unavailable):
        write(place, b"a")
    write(place, b"b")  # Both are durable now.
    assert keys(open_place(store)) == [b"a", b"b"]
    assert place.next == 2


def test_a_store_that_overwrites_is_refused(store, monkeypatch):
    place = open_place(store)
    put = obstore.put
    monkeypatch.setattr(place, "_api", type("Careless", (), {"put": lambda s, p, c, **_: put(s, p, c)}))
    with pytest.raises(TopicMismatch, match="conditional writes"):
        write(place, b"a")


def test_a_damaged_object_is_named(store):
    place = open_place(store)
    write(place, b"a")
    path = "p0/00000000000000000000"
    obstore.put(store, path, bytes(obstore.get(store, path).bytes())[:-3])
    with pytest.raises(LogCorruption, match="partition 0 of 'x': object 0 is damaged"):
        open_place(store)


@pytest.mark.parametrize("number", [0, 1])
def test_a_flipped_bit_is_found_wherever_it_is(store, number):
    """It could make an object part of no chain, or a record one that is passed over."""
    place = open_place(store)
    write(place, b"a")
    write(place, b"b")
    path = f"p0/{number:020d}"
    whole = bytes(obstore.get(store, path).bytes())
    for at in range(len(whole)):
        obstore.put(store, path, whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            found = keys(open_place(store))
        except LogCorruption:
            continue
        assert [key for key in found if len(key) != len(b"crc32")] == [b"a", b"b"], at


def test_objects_of_older_versions_have_no_checksum(store):
    place = open_place(store)
    write(place, b"a")
    path = "p0/00000000000000000000"
    obstore.put(store, path, bytes(obstore.get(store, path).bytes())[:-21])
    assert keys(open_place(store)) == [b"a"]


def test_other_objects_are_passed_over(store):
    obstore.put(store, "p0/readme.txt", b"hello")
    obstore.put(store, "p01/00000000000000000007", b"hello")
    place = open_place(store)
    write(place, b"a")
    assert keys(open_place(store)) == [b"a"]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (obstore.exceptions.PermissionDeniedError("no right\n\nDebug source: x"), AccessDenied),
        (obstore.exceptions.UnauthenticatedError("no right\n\nDebug source: x"), AccessDenied),
        (obstore.exceptions.GenericError("no right\n\nDebug source: x"), Unavailable),
        (OSError("no right"), Unavailable),
    ],
)
def test_errors_of_the_store_are_those_of_logs(store, monkeypatch, error, expected):
    place = open_place(store)

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(place, "_api", type("Failing", (), {"put": fail}))
    with pytest.raises(expected, match=r"^partition 0 of 'x': no right; check state.url"):
        write(place, b"a")


SAID = """Generic S3 error: Error performing GET http://s3/b in 1ms - Server returned non-2xx status code: {}: \
<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{}</Code><Message>Read
this.</Message><HostId>8aIH=</HostId></Error>\n\nDebug source:\nGeneric {{}}"""


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        ("403 Forbidden", "SignatureDoesNotMatch", AccessDenied),
        ("403 Forbidden", "InvalidAccessKeyId", AccessDenied),
        ("404 Not Found", "XAdminUserNotFound", AccessDenied),  # of VersityGW
        ("400 Bad Request", "ExpiredToken", AccessDenied),
        ("404 Not Found", "NoSuchBucket", TopicMismatch),
        ("404 Not Found", "ContainerNotFound", TopicMismatch),
        ("301 Moved Permanently", "PermanentRedirect", TopicMismatch),
        ("400 Bad Request", "InvalidBucketName", TopicMismatch),
        ("429 Too Many Requests", "SlowDown", Unavailable),
        ("503 Service Unavailable", "SlowDown", Unavailable),
        ("500 Internal Server Error", "InternalError", Unavailable),
    ],
)
@pytest.mark.parametrize("kind", [obstore.exceptions.GenericError, FileNotFoundError])
def test_what_a_store_says_tells_whether_a_restart_may_mend_it(monkeypatch, status, code, expected, kind):
    place = open_place(obstore.store.MemoryStore())

    def fail(*_, **__):
        raise kind(SAID.format(status, code))

    monkeypatch.setattr(place, "_api", type("Failing", (), {"get": fail, "list": fail, "put": fail}))
    whole = rf"^partition 0 of 'x': .* status code: {status}: {code}: Read this\.; check state\.url"
    for act in (lambda: write(place, b"a"), lambda: keys(place), lambda: place._read(0)):
        with pytest.raises(expected, match=whole):
            act()
        place._sent = b""


def test_a_missing_bucket_is_named(s3, monkeypatch):
    place = ObjectPlace(s3_store(s3, monkeypatch, "missing"), "p0", "partition 0 of 'x'")
    with pytest.raises(TopicMismatch, match=r"NoSuchBucket: The specified bucket does not exist; check state.url"):
        list(place.records(0))


def test_an_address_without_encryption_needs_a_variable(s3, monkeypatch):
    place = ObjectPlace(s3_store(s3, monkeypatch, "bucket", ALLOW_HTTP="false"), "p0", "partition 0 of 'x'")
    with pytest.raises(OptionRefused, match="needs AWS_ALLOW_HTTP=true"):
        list(place.records(0))


def test_a_url_that_obstore_does_not_know():
    with pytest.raises(OptionRefused, match=r"^Generic URL error: Unable to recognise URL .*; check state\.url"):
        open_objects("ftp://somewhere")
