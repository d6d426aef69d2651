"""The report as a person uses it, in headless Chromium: it opens, searches, filters, explains, and prints."""

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, ChromeOptions, Keys
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from safe_uninstall.render.report import render_report
from tests.support.program import safe_uninstall

_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--window-size=1280,1000",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Return Chromium, which must be there: what is not looked at is not known to work."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert chromium is not None, "these tests need Chromium: apt-get install chromium chromium-driver"
    assert driver is not None, "these tests need ChromeDriver: apt-get install chromium-driver"
    options = ChromeOptions()
    options.binary_location = chromium
    for option in (*_OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the reports of the incident in miniature: blocked, restored, and audited."""
    directory = tmp_path_factory.mktemp("reports")
    assert safe_uninstall("demo", "--into", directory / "playground").status == 0
    here = ("-p", directory / "playground/env")
    wheels = ("--find-links", directory / "playground/wheels", "--no-index")
    blocked = safe_uninstall(*here, "demo-cudnn-cu13", "--format", "html", "-o", directory / "blocked.html")
    assert (blocked.status, blocked.out) == (3, "")
    restored = safe_uninstall(
        *here, "demo-cudnn-cu13", "--restore", *wheels, "--format", "html", "-o", directory / "restored.html"
    )
    assert restored.status == 0
    checked = safe_uninstall("check", *here, "--format", "html")
    assert checked.status == 3
    (directory / "check.html").write_text(checked.out)
    return directory


def opened(browser: Chrome, page: Path) -> None:
    """Open a page, and hold that nothing went wrong and nothing else was asked for."""
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(page.as_uri())
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert asked == [page.as_uri()]


def shown(browser: Chrome, selector: str) -> list[WebElement]:
    """Return the elements that can be seen."""
    return [item for item in browser.find_elements(By.CSS_SELECTOR, selector) if item.is_displayed()]


def node(browser: Chrome, label: str) -> WebElement:
    """Return the node of the graph that is called so."""
    return browser.find_element(By.CSS_SELECTOR, f'.node[aria-label^="{label}"]')


def is_dim(element: WebElement) -> bool:
    """Return whether a part of the graph is out of the light."""
    return "dim" in (element.get_attribute("class") or "").split()


def test_a_blocked_plan(browser: Chrome, reports: Path) -> None:
    """The verdict, what would work, before and after, the graph and the findings are there to be seen."""
    opened(browser, reports / "blocked.html")
    (verdict,) = shown(browser, "#verdict")
    assert verdict.text == "Blocked: 2 errors. None of this is done."
    commands = [item.text for item in shown(browser, "header pre")]
    assert [command.rpartition(" ")[2] for command in commands] == ["--restore"]
    rows = [item.text for item in shown(browser, "tr[data-row]")]
    assert any("demo-cudnn-cu13" in row and "would be removed" in row for row in rows)
    assert any("libdemotorch.so" in row and "nothing" in row for row in rows)
    assert len(shown(browser, ".finding")) == 2
    assert len(shown(browser, ".node")) == 5


def test_a_restored_plan_and_an_audit(browser: Chrome, reports: Path) -> None:
    """Other documents, the same page."""
    opened(browser, reports / "restored.html")
    assert shown(browser, "#verdict")[0].text.startswith("Rewritten, so that nothing is lost")
    assert any("its own files again" in item.text for item in shown(browser, "tr[data-row]"))
    opened(browser, reports / "check.html")
    assert shown(browser, "#verdict")[0].text.startswith("Damaged: 1 error")
    assert any(item.text.endswith("check --fix") for item in shown(browser, "header pre"))


def test_the_search_filters_everything(browser: Chrome, reports: Path) -> None:
    """Findings, rows and nodes that do not match step back; an emptied search shows all again."""
    opened(browser, reports / "blocked.html")
    search = browser.find_element(By.ID, "search")
    search.send_keys("would lose")
    assert [item.get_attribute("id") for item in shown(browser, ".finding")] == ["finding-2"]
    assert browser.find_element(By.ID, "matches").text == "1 of 2 findings shown"
    assert shown(browser, "main > .scroll tr[data-row]") == []
    search.clear()
    search.send_keys("9.24.0.43")
    assert not is_dim(node(browser, "demo-cudnn-cu13"))
    assert is_dim(node(browser, "demo_torch/lib/libdemotorch.so"))
    search.send_keys(Keys.CONTROL, "a")
    search.send_keys(Keys.DELETE)
    assert len(shown(browser, ".finding")) == 2
    assert not any(is_dim(item) for item in browser.find_elements(By.CSS_SELECTOR, ".node"))


def test_severities_can_be_hidden(browser: Chrome, reports: Path) -> None:
    """Each box hides findings of its severity and no others."""
    opened(browser, reports / "blocked.html")
    browser.find_element(By.CSS_SELECTOR, '[data-severity="warning"][type="checkbox"]').click()
    assert len(shown(browser, ".finding")) == 2
    browser.find_element(By.CSS_SELECTOR, '[data-severity="error"][type="checkbox"]').click()
    assert shown(browser, ".finding") == []


def test_a_click_shows_the_evidence(browser: Chrome, reports: Path) -> None:
    """Of the node, with links to its findings; by mouse and by key; a second click or Escape takes it away."""
    opened(browser, reports / "blocked.html")
    panel = browser.find_element(By.ID, "evidence")
    library = node(browser, "demo_nvidia/cudnn/lib/libdemocudnn.so.9")
    library.click()
    assert "libdemotorch.so" in panel.text
    assert "RPATH" in panel.text
    links = [item.get_attribute("href") or "" for item in panel.find_elements(By.TAG_NAME, "a")]
    assert [link.rpartition("#")[2] for link in links] == ["finding-1", "finding-2"]
    library.send_keys(Keys.ENTER)
    assert panel.text.startswith("Choose a distribution")
    node(browser, "demo-cudnn-cu12").send_keys(Keys.ENTER)
    assert panel.text.startswith("demo-cudnn-cu12 9.10.2.21 (damaged)")
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    assert panel.text.startswith("Choose a distribution")


def test_it_prints_whole(browser: Chrome, reports: Path) -> None:
    """On paper there are no controls, nothing that was filtered is missing, and nothing is folded away."""
    opened(browser, reports / "blocked.html")
    browser.find_element(By.ID, "search").send_keys("no such thing")
    assert shown(browser, ".finding") == []
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    try:
        assert len(shown(browser, ".finding")) == 2
        assert shown(browser, ".controls") == []
        assert shown(browser, "button") == []
        assert not any(item.get_attribute("open") is None for item in browser.find_elements(By.TAG_NAME, "details"))
        paper: dict[str, Any] = browser.execute_cdp_cmd("Page.printToPDF", {})
        assert base64.b64decode(paper["data"]).startswith(b"%PDF-")
    finally:
        browser.execute_script("dispatchEvent(new Event('afterprint'))")
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_colour_schemes_can_be_read(browser: Chrome, reports: Path, scheme: str) -> None:
    """Text stands out from what is behind it by 4.5 to 1 at least (WCAG 2.1, 1.4.3)."""
    feature = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": feature})
    opened(browser, reports / "blocked.html")
    pairs = [("--text", "--back"), ("--quiet", "--panel"), ("--link", "--back")]
    pairs += [(f"--{name}", f"--{name}-back") for name in ("error", "warning", "note", "good")]
    ask = "return arguments[0].map((n) => getComputedStyle(document.documentElement).getPropertyValue(n).trim())"
    for front, back in pairs:
        bright, dark = sorted(map(luminance, browser.execute_script(ask, [front, back])), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, (scheme, front, back)


def luminance(color: str) -> float:
    """Return the relative luminance of ``#rrggbb`` (WCAG 2.1)."""
    parts = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_names_of_other_people_are_inert(browser: Chrome, reports: Path, tmp_path: Path) -> None:
    """A distribution, path or message that is markup is shown, and none of it runs."""
    page = (reports / "blocked.html").read_text()
    assert "</script><script>" not in page
    hostile = "</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
    here = ("-p", reports / "playground/env")
    document = safe_uninstall(*here, "-n", "demo-cudnn-cu13", "--format", "json").document
    text = json.dumps(document).replace("demo_torch/lib/libdemotorch.so", hostile.replace('"', "'"))
    (tmp_path / "hostile.html").write_text(render_report(json.loads(text)))
    opened(browser, tmp_path / "hostile.html")
    assert browser.title != "owned"
    assert any(hostile[:20] in item.text for item in shown(browser, "tr[data-row]"))
