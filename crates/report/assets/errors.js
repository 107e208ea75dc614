// Errors of the page's own script are never silent: they stand on top of the page and in an attribute for tests.
(() => {
  const errors = [];
  window.showError = (text) => {
    errors.push(String(text));
    document.documentElement.dataset.scriptErrors = errors.join("\n");
    if (!document.body) return;
    let box = document.getElementById("broken");
    if (!box) {
      box = document.createElement("div");
      box.id = "broken";
      box.className = "broken";
      box.setAttribute("role", "alert");
      document.body.prepend(box);
    }
    box.textContent = errors.join(" ") + " The tables of this page do not depend on it.";
  };
  addEventListener("error", (event) => showError("A script of this page failed: " + (event.message || "unknown") + "."));
  addEventListener("unhandledrejection", (event) => showError("A script of this page failed: " + event.reason + "."));
  addEventListener("securitypolicyviolation", (event) =>
    showError("This page was kept from loading or running something: " + event.violatedDirective + " " + event.blockedURI + "."));
})();
