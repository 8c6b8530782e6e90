// Browsers give pages of file:// no workers. There the script of search runs in a hidden frame.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      const script = this.inside.document.createElement("script")
      this.ready = new Promise((loaded) => script.addEventListener("load", loaded))
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      script.src = new URL(url, location.href)
      this.inside.document.body.append(script)
    }

    async postMessage(data) {
      await this.ready
      this.inside.dispatchEvent(new MessageEvent("message", { data }))
    }
  }
  window.Worker = window.IFrameWorker
}
