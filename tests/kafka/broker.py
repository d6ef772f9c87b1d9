"""A real Apache Kafka broker on this machine, from Maven's artefacts: one node, loopback only, its data in one folder.

    python tests/kafka/broker.py --port 9092        # or: make kafka

Needs Java 17 and, the first time, Maven; nothing of Python but the standard library.
"""

import argparse
import contextlib
import fcntl
import functools
import os
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

VERSION = "4.3.1"
USER, PASSWORD = "streamsvm", "loopback"  # of the SASL listener
START_SECONDS, STOP_SECONDS = 600, 60  # for a busy machine; one that ends while it starts is noticed at once
JAVA = ("java", "-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
JAVA += ("-Dlog4j2.configurationFile=file:log4j2.properties",)
PORT_TAKEN = "Address already in use"  # as Java says it
LISTENERS = ("PLAINTEXT", "SASL_PLAINTEXT", "SSL", "CONTROLLER")

POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
  <groupId>streamsvm.test</groupId><artifactId>kafka-broker</artifactId><version>0</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version></dependency>
    <dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-core</artifactId><version>2.24.3</version></dependency>
    <dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.24.3</version></dependency>
  </dependencies>
</project>
"""

LOGGING = """\
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{ISO8601} %p %c{1}: %m%n
rootLogger.level=WARN
rootLogger.appenderRef.console.ref=console
logger.server.name=kafka.server.KafkaRaftServer
logger.server.level=INFO
"""

# One of everything that Kafka has three of; clean-up within a second or so; no waiting for further group members. The
# broker's session is short because, killed and started again, it is let in only when the old one is over.
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{ports[CONTROLLER]}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listeners={listeners}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT
listener.name.sasl_plaintext.sasl.enabled.mechanisms=SCRAM-SHA-256,OAUTHBEARER
listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config=\
org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;
listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PKCS12
ssl.keystore.location={libraries}/broker.p12
ssl.keystore.password={password}

log.dirs={folder}/data
auto.create.topics.enable=false
num.partitions=1
default.replication.factor=1
min.insync.replicas=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1

group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
group.consumer.min.session.timeout.ms=1000
group.consumer.session.timeout.ms=3000
group.consumer.min.heartbeat.interval.ms=500
group.consumer.heartbeat.interval.ms=500
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500

log.initial.task.delay.ms=500
log.retention.check.interval.ms=1000
log.segment.delete.delay.ms=500
log.cleaner.backoff.ms=500
log.cleaner.dedupe.buffer.size=2097152

num.network.threads=2
num.io.threads=2
"""


def cache() -> Path:
    """Where the libraries of this version of Kafka lie once they were fetched."""
    return Path(os.environ.get("STREAMSVM_KAFKA_CACHE", "~/.cache/streamsvm")).expanduser() / f"kafka-{VERSION}"


def run(*command: str | Path, cwd: Path) -> None:
    """Run to the end; an error shows what the command said."""
    answer = subprocess.run(
        command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if answer.returncode:
        raise RuntimeError(f"{command[0]} failed with status {answer.returncode}:\n{answer.stdout[-2000:]}")


def fetch() -> Path:
    """Folder of Kafka's jars and of the broker's certificate, filled on the first call."""
    target = cache()
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.with_name(target.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be fetching; what it fetched is then there for this one
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=target.parent) as name:
                new = Path(name, target.name)
                new.mkdir()
                download(new)
                make_certificate(new)
                new.rename(target)
    return target


def download(folder: Path) -> None:
    (folder / "pom.xml").write_text(POM)
    run("mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=.", cwd=folder)


def make_certificate(folder: Path) -> None:
    """A key for 127.0.0.1 in broker.p12 and, in ca.pem, what a client has to trust."""
    store = ("-alias", "broker", "-keystore", "broker.p12", "-storetype", "PKCS12", "-storepass", PASSWORD)
    names = ("-dname", "CN=localhost", "-ext", "san=ip:127.0.0.1,dns:localhost")
    issuer = ("-ext", "bc:critical=ca:true", "-ext", "ku:critical=digitalSignature,keyCertSign")
    run("keytool", "-genkeypair", *store, "-keyalg", "EC", "-validity", "36500", *names, *issuer, cwd=folder)
    run("keytool", "-exportcert", *store, "-rfc", "-file", "ca.pem", cwd=folder)


@functools.cache
def why_impossible() -> str | None:
    """Reason why no broker can be started here, or None; fetches Kafka if need be."""
    if not shutil.which("java"):
        return "there is no java; Kafka 4 needs Java 17 or newer"
    answer = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr
    version = re.search(r'version "(\d+)', answer)
    if not version or int(version[1]) < 17:
        return f"Kafka 4 needs Java 17 or newer; this is {answer.strip()}"
    if not cache().exists() and not shutil.which("mvn"):
        return f"there is no mvn (Maven) to fetch Kafka with, and none in {cache()}"
    try:
        fetch()
    except (OSError, RuntimeError) as error:
        return f"Kafka could not be fetched: {error}"
    return None


def free_ports(count: int) -> list[int]:
    """Ports below those that the system gives to outgoing connections.

    A client that keeps trying to connect to a stopped broker would sooner or later be given that broker's port for its
    own end, be connected to itself, and keep the broker from starting again.
    """
    ports: list[int] = []
    for port in random.sample(range(20_000, 32_000), 100):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            ports.append(port)
    return ports[:count]


class Broker:
    """A broker and controller in one process, with a listener each for plain, SASL and TLS clients.

    SASL lets in SCRAM-SHA-256, and OAUTHBEARER with any token that is not signed.

    It keeps its ports and its data when it is stopped or killed and started again. Topics have to be created.

    Parameters
    ----------
    folder : Path
        Where everything lies: settings, data, broker.log. One that a broker has used before is taken up again.
    port : int, optional
        Of the plain listener. By default some free port.

    Attributes
    ----------
    bootstrap : str
        Address of the plain listener.
    sasl, tls : dict
        What a client of kafka-python has to be given to get in by the other two.
    process : subprocess.Popen or None
        The running broker; its process group is its own.
    """

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = folder.absolute()
        self.port = port
        self.process: subprocess.Popen | None = None
        self.addressed = False  # whether clients may know its ports, which then stay
        self.choose_ports()

    def choose_ports(self) -> None:
        self.ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
        if self.port is not None:
            self.ports["PLAINTEXT"] = self.port

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.ports['PLAINTEXT']}"

    @property
    def sasl(self) -> dict[str, str]:
        return {
            "bootstrap_servers": f"127.0.0.1:{self.ports['SASL_PLAINTEXT']}",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_plain_username": USER,
            "sasl_plain_password": PASSWORD,
        }

    @property
    def tls(self) -> dict[str, str]:
        return {
            "bootstrap_servers": f"127.0.0.1:{self.ports['SSL']}",
            "security_protocol": "SSL",
            "ssl_cafile": str(cache() / "ca.pem"),
        }

    @property
    def log(self) -> Path:
        return self.folder / "broker.log"

    def start(self) -> "Broker":
        """Start, and return when it is ready for clients."""
        for _ in range(3):
            self.launch()
            said = self.wait_until_ready()
            if said is None:
                self.addressed = True
                return self
            if self.addressed or PORT_TAKEN not in said:
                break
            self.choose_ports()  # one was taken after it had been found free
        why = "its port is taken" if PORT_TAKEN in said else f"{self.log} ends with:\n{said[-2000:]}"
        raise RuntimeError(f"the broker at {self.bootstrap} did not start: {why}")

    def launch(self) -> None:
        libraries = fetch()
        self.folder.mkdir(parents=True, exist_ok=True)
        listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items())
        settings = PROPERTIES.format(
            ports=self.ports, listeners=listeners, libraries=libraries, folder=self.folder, password=PASSWORD
        )
        (self.folder / "server.properties").write_text(settings)
        (self.folder / "log4j2.properties").write_text(LOGGING)
        java = [*JAVA, "-cp", f"{libraries}/*"]
        if not (self.folder / "data" / "meta.properties").exists():
            scram = f"SCRAM-SHA-256=[name={USER},password={PASSWORD}]"
            identity = ["-t", secrets.token_hex(11), "-c", "server.properties", "--add-scram", scram]
            run(*java, "kafka.tools.StorageTool", "format", *identity, cwd=self.folder)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*java, "kafka.Kafka", "server.properties"],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_ready(self) -> str | None:
        """None when it is ready; what it said if it is not, and then it no longer runs."""
        deadline = time.monotonic() + START_SECONDS
        while self.is_running() and time.monotonic() < deadline:
            if "Kafka Server started" in self.log.read_text():
                return None
            time.sleep(0.05)
        self.kill()
        return self.log.read_text()

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """Ask it to end (SIGTERM), and see that it does."""
        self.end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut would (SIGKILL), but for what the system still writes to the disk."""
        self.end(signal.SIGKILL)

    def end(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        if self.is_running():
            os.killpg(self.process.pid, number)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = None


def main() -> None:
    """Run a broker until Ctrl-C."""
    data = cache().parent / "kafka-data"
    parser = argparse.ArgumentParser(description="Run an Apache Kafka broker on this machine until Ctrl-C.")
    parser.add_argument("--port", type=int, default=9092, help="of its plain listener (default: %(default)s)")
    parser.add_argument("--dir", type=Path, default=data, help="keeps its data from run to run (default: %(default)s)")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    reason = why_impossible()
    if reason:
        sys.exit(reason)
    broker = Broker(arguments.dir, arguments.port)
    try:
        broker.start()
        print(f"Kafka {VERSION} is at {broker.bootstrap}, its data in {broker.folder}; Ctrl-C ends it.", flush=True)
        broker.process.wait()
        sys.exit(f"the broker ended by itself; see {broker.log}")
    except KeyboardInterrupt:
        print()
    except RuntimeError as error:
        sys.exit(str(error))
    finally:
        broker.stop()


if __name__ == "__main__":
    main()
