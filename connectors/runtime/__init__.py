"""What every process needs, whatever it does: signals, a heartbeat, metrics, HTTP, logging, and private folders.

It imports the engine's core only.  A loop writes `health.Health` and `metrics.Metrics`.  `status_server.StatusServer`
shows both over HTTP, and `watchdog.Watchdog` ends a process whose heart has stopped.  `http` is the bounded server that
the labelling page and Label Studio use, too.
"""
