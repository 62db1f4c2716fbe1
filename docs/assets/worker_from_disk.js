// Browsers start no worker from a file: page. The search's is then run in a frame instead.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.title = "search"
      window.addEventListener("message", event => {
        if (event.source === frame.contentWindow)
          this.dispatchEvent(new MessageEvent("message", { data: event.data }))
      })
      frame.addEventListener("load", () => {
        this.frame = frame.contentWindow
        this.waiting.splice(0).forEach(data => this.frame.postMessage(data, "*"))
      })
      // what the worker posts goes to the page, not to the frame itself
      frame.srcdoc = "<script>self.postMessage = data => parent.postMessage(data, '*')</script>" +
        `<script src="${url}"></script>`
      document.addEventListener("DOMContentLoaded", () => document.body.append(frame))
      if (document.body) document.body.append(frame)
    }
    postMessage(data) {
      if (this.frame) this.frame.postMessage(data, "*")
      else this.waiting.push(data)
    }
    terminate() {}
  }
  window.Worker = window.IFrameWorker
}
