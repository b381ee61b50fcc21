// Browsers refuse workers to pages opened from the disk: there, the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  const load = (page, url) =>
    new Promise((resolve, reject) => {
      const script = page.createElement("script");
      Object.assign(script, { src: url, onload: resolve, onerror: reject });
      page.body.append(script);
    });

  window.Worker = class extends EventTarget {
    constructor(path) {
      super();
      const url = new URL(path, document.baseURI).href;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const page = this.frame.contentDocument;
      page.open(); // so that no browser replaces the document later
      page.write("<!doctype html><body></body>");
      page.close();

      this.scope = this.frame.contentWindow;
      this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.scope.importScripts = (...paths) =>
        paths.reduce((loaded, it) => loaded.then(() => load(page, new URL(it, url).href)), Promise.resolve());
      this.ready = load(page, url);
    }

    postMessage(data) {
      this.ready.then(() => this.scope.dispatchEvent(new this.scope.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
