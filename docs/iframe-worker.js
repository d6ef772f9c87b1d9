// The search runs in a Worker, which browsers refuse to a page that was opened from a folder (file://).
// There, this class runs the worker's script in a hidden frame instead. Material would load one from the network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      this.inner = this.frame.contentWindow
      this.loaded = new Promise((resolve) => { this.frame.onload = resolve })
      const page = this.inner.document
      page.open()
      this.inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      page.write(`<script src="${new URL(url, location.href)}"></` + "script>")
      page.close()
    }

    postMessage(data) {
      this.loaded.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
