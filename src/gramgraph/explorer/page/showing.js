// Which picture stands on the stage: the graph, a neighborhood of it, the junction tree, the messages step by step.
import { Asking } from "./asking.js";
import { drawChrome } from "./frame.js";
import { drawPanel } from "./panel.js";
import { drawMessages, drawTree, messagePanel, treePanel } from "./views.js";

export class Showing extends Asking {
  async loadScene(center) {
    const scene = await this.quietly("scene", { center });
    if (!scene || scene.error) return;
    this.scene = scene;
    this.prior = scene.prior;
    this.focus = center;
    this.graph.closePeek();
    this.graph.draw();
    await this.refresh();
  }

  redraw() {
    if (this.other) return this.other.draw && this.other.draw();
    if (this.view === "graph") this.graph.draw();
    else this.drawView();
  }

  setView(view) {
    this.view = view;
    this.shownStep = 1;
    this.viewData = null;
    this.graph.closePeek();
    this.keep();
    drawChrome(this);
    if (view === "graph") {
      this.graph.draw();
      drawPanel(this, this.side);
    }
    return this.askPanels();
  }

  async drawView() {
    const view = this.view;
    const body = { case: this.findings, method: this.method };
    const key = JSON.stringify([view, body]);
    if (!this.viewData || this.viewKey !== key) {
      const found = await this.quietly(view, body);
      if (!found || this.view !== view || JSON.stringify(this.findings) !== JSON.stringify(body.case)) return;
      if (found.error) {
        this.toast(found.error);
        return this.setView("graph");
      }
      this.viewData = found;
      this.viewKey = key;
    }
    this.side.textContent = "";
    this.graph.mini.style.display = "none";
    if (view === "tree") {
      drawTree(this, this.graph, this.viewData);
      treePanel(this, this.side, this.viewData);
    } else {
      drawMessages(this, this.graph, this.viewData);
      messagePanel(this, this.side, this.viewData);
    }
    this.root.dataset.view = view + this.shownStep + this.method;
  }

  setStep(step) {
    this.shownStep = Math.min(Math.max(step, 1), this.viewData.steps.length);
    this.drawView();
  }

  setMethod(method) {
    this.method = method;
    this.shownStep = 1;
    this.drawView();
  }

  play() {
    if (this.playing) {
      clearInterval(this.playing);
      this.playing = null;
      return this.drawView();
    }
    this.playing = setInterval(() => {
      if (this.view !== "messages" || this.shownStep >= this.viewData.steps.length) {
        clearInterval(this.playing);
        this.playing = null;
        if (this.view === "messages") this.drawView();
      } else this.setStep(this.shownStep + 1);
    }, 900);
    this.drawView();
  }
}
