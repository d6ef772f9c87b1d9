"""What can be said of the Kafka client without a broker; everything else is in tests/kafka."""

import socket

import pytest
from kafka.errors import KafkaConnectionError
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

from streamsvm.connectors import kafka_log


class Net:
    """The client's event loop as far as one transport that reads needs it; it never waits."""

    def call_soon(self, task):
        self.task = task

    async def wait_read(self, sock):
        pass

    def unregister_event(self, sock, events):
        pass

    def cancel(self, task):
        pass


class Protocol:
    """Notes what the transport hands on."""

    _sensors = None

    def __init__(self):
        self.heard = []

    def data_received(self, data):
        self.heard.append(data)

    def connection_lost(self, error):
        self.heard.append(type(error))


class NoEncryption:
    """A context of TLS that leaves the socket as it is."""

    def wrap_socket(self, sock, **_):
        return sock


TRANSPORTS = {"tcp": KafkaTCPTransport, "tls": lambda *args: KafkaSSLTransport(*args, ssl_context=NoEncryption())}


@pytest.mark.parametrize("kind", TRANSPORTS)
@pytest.mark.parametrize("said", [b"", b"wrong password", b"long " * 5000], ids=len)
def test_what_a_broker_says_before_it_closes_is_heard(kind, said):
    """The client reads the words and the end at once, and left alone would throw the words away."""
    assert kafka_log  # which has mended the client's transports
    ours, brokers = socket.socketpair()
    ours.setblocking(False)
    brokers.sendall(said)
    brokers.close()
    net, protocol = Net(), Protocol()
    transport = TRANSPORTS[kind](net, ours)
    transport.set_protocol(protocol)
    transport.resume_reading()
    with pytest.raises(StopIteration):  # no event loop: a browser's test may have left its own running
        net.task().send(None)
    assert protocol.heard == ([said] if said else []) + [KafkaConnectionError]
    assert transport.is_closing()
