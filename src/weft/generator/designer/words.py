"""Words of the field as data: domains with their people and tools, roles and services.

Terms are written as `Wording.find` reads them: parted by "|", "*" for any ending, no accents.
"""

from dataclasses import dataclass
from typing import Final

from weft.generator.designer.text import Wording
from weft.spec.plan import SourceKind


@dataclass(frozen=True, slots=True)
class Domain:
    """What a field of work brings along when the brief does not say."""

    name: str
    #: The words of a brief that speak for it.
    terms: str
    #: What is worked on, and what people get out of it.
    thing: str
    value: str
    #: Who knows about it, and what each does: the words of a tool.
    team: tuple[tuple[str, str], ...]
    data: tuple[tuple[str, SourceKind], ...]


DOMAINS: Final = (
    Domain(
        "support",
        "support|helpdesk|help desk|customer service|ticket|tickets|complaint*|kundendienst"
        "|kundenservice|kundenanfrage*|soporte|atencion al cliente|service client"
        "|サポート|問い合わせ",
        "support request",
        "an answer the customer can use",
        (
            ("technical specialist", "diagnose the reported fault"),
            ("billing specialist", "look up the charges"),
            ("account specialist", "check the contract of the customer"),
            ("product expert", "search the knowledge base"),
        ),
        (("support ticket", "data_entity"), ("customer record", "data_reference")),
    ),
    Domain(
        "finance",
        "invoice*|billing|accounts payable|expense*|payment*|bookkeep*|rechnung*|buchhalt*|factura*"
        "|gastos|facture*|comptab*|請求書|経費",
        "invoice",
        "an invoice that is checked and booked",
        (
            ("invoice reader", "extract the lines of the invoice"),
            ("purchase matcher", "match the ordered items"),
            ("bookkeeper", "prepare the booking"),
            ("tax advisor", "check the tax rates"),
        ),
        (("invoice", "data_entity"), ("purchase order", "data_reference")),
    ),
    Domain(
        "research",
        "research*|study|studies|literature|papers|sources|digest|findings|recherche*|forschung*"
        "|investigacion|investigar|調査|研究",
        "research question",
        "a summary with its sources",
        (
            ("source researcher", "search the sources"),
            ("fact checker", "verify the claims"),
            ("data analyst", "analyse the figures"),
            ("summary writer", "write the summary"),
        ),
        (("research report", "data_entity"), ("source list", "data_reference")),
    ),
    Domain(
        "incidents",
        "incident*|outage*|alert|alerts|on call|monitoring|downtime|production error*|storung*"
        "|ausfall*|incidente*|incidencia*|panne*|障害|インシデント",
        "incident",
        "an incident that is understood and worked off",
        (
            ("log analyst", "search the logs"),
            ("infrastructure engineer", "check the affected services"),
            ("database engineer", "inspect the slow queries"),
            ("communications lead", "draft the status update"),
        ),
        (("incident record", "data_entity"), ("service catalog", "data_reference")),
    ),
    Domain(
        "content",
        "article*|blog*|content|newsletter*|marketing|copy|campaign*|social media|press release*"
        "|artikel|beitrag*|kampagne*|articulo*|campana*|redaction|記事|ブログ",
        "article",
        "a text that can be published",
        (
            ("content writer", "write the draft"),
            ("copy editor", "correct the language"),
            ("search optimizer", "choose the key words"),
            ("brand expert", "check the tone of voice"),
        ),
        (("article draft", "data_entity"), ("style guide", "data_reference")),
    ),
    Domain(
        "onboarding",
        "onboard*|new employee*|new hire*|new colleague*|human resources|hr|leave request*|vacation"
        "|holiday request*|neue mitarbeiter*|einarbeit*|urlaub*|empleado*|vacaciones|incorporacion"
        "|conges|入社|休暇",
        "employee request",
        "an employee who has what is needed",
        (
            ("people partner", "check the employment terms"),
            ("equipment planner", "order the equipment"),
            ("access administrator", "prepare the accounts"),
            ("training planner", "plan the first weeks"),
        ),
        (("employee request", "data_entity"), ("employee profile", "data_reference")),
    ),
    Domain(
        "claims",
        "claim|claims|insur*|policyholder*|damage*|versicherung*|schaden*|seguro|seguros|siniestro*"
        "|reclamacion*|assurance|sinistre*|保険",
        "claim",
        "a claim that is decided with its reasons",
        (
            ("policy examiner", "check the cover of the policy"),
            ("damage assessor", "estimate the damage"),
            ("fraud analyst", "look for signs of fraud"),
            ("settlement clerk", "calculate the settlement"),
        ),
        (("claim", "data_entity"), ("insurance policy", "data_reference")),
    ),
    Domain(
        "hiring",
        "hiring|hire|recruit*|job profile*|applications|candidate*|applicant*|resume|resumes"
        "|job interview*|vacancy|bewerb*|candidato*|contratacion|candidat*|recrutement|採用",
        "application",
        "a fair shortlist with reasons",
        (
            ("resume reader", "extract the experience"),
            ("skills assessor", "compare with the requirements"),
            ("interview planner", "propose the interview dates"),
            ("culture interviewer", "prepare the interview questions"),
        ),
        (("application", "data_entity"), ("job profile", "data_reference")),
    ),
    Domain(
        "sales",
        "sales|new lead*|a lead|opportunit*|prospect*|crm|quote|quotes|offer|offers|proposal*"
        "|vertrieb*|angebot*|ventas|cliente potencial|vente*|devis|営業",
        "sales opportunity",
        "an offer the customer can accept",
        (
            ("account researcher", "research the company"),
            ("lead qualifier", "score the opportunity"),
            ("pricing analyst", "calculate the price"),
            ("proposal writer", "write the offer"),
        ),
        (("opportunity", "data_entity"), ("price list", "data_reference")),
    ),
    Domain(
        "travel",
        "travel*|trip|trips|flight*|hotel*|itinerar*|reise*|flug*|viaje*|vuelo*|voyage*|出張|旅行",
        "trip",
        "a trip that is planned and affordable",
        (
            ("flight planner", "search the connections"),
            ("hotel planner", "search the hotels"),
            ("local guide", "suggest the activities"),
            ("cost planner", "add up the costs"),
        ),
        (("itinerary", "data_entity"), ("travel policy", "data_reference")),
    ),
    Domain(
        "legal",
        "legal*|contract*|clause*|lawyer*|compliance|nda|gdpr|vertrag*|jurist*|anwalt*|contrato*"
        "|abogad*|juridi*|contrat|avocat*|契約|法務",
        "contract",
        "a contract whose risks are known",
        (
            ("contract lawyer", "check the clauses"),
            ("privacy counsel", "check the data protection terms"),
            ("liability expert", "assess the liability"),
            ("negotiation adviser", "propose the changes"),
        ),
        (("contract", "data_entity"), ("clause library", "data_reference")),
    ),
    Domain(
        "education",
        "student*|teach*|course*|lesson*|homework|exam*|curriculum|school*|schuler*|unterricht*"
        "|estudiante*|clase|clases|eleve*|cours|授業|学生",
        "lesson",
        "a lesson the students can follow",
        (
            ("lesson planner", "outline the lesson"),
            ("exercise author", "write the exercises"),
            ("subject tutor", "explain the difficult parts"),
            ("grader", "grade the answers"),
        ),
        (("lesson plan", "data_entity"), ("curriculum", "data_reference")),
    ),
    Domain(
        "health",
        "patient*|clinic*|medical|symptom*|diagnos*|hospital*|doctor*|arzt*|klinik*|paciente*"
        "|medic*|sante|患者|診療",
        "patient case",
        "a case that is prepared for the doctor",
        (
            ("symptom reader", "list the symptoms"),
            ("medication checker", "check the medication"),
            ("guideline expert", "search the guidelines"),
            ("case writer", "write the notes for the doctor"),
        ),
        (("case notes", "data_entity"), ("patient record", "data_reference")),
    ),
    Domain(
        "software",
        "software|code|bug|bugs|pull request*|release|releases|deploy*|repository|developer*"
        "|unit test*|quellcode|programacion|logiciel|コード|開発",
        "change",
        "a change that is ready to be released",
        (
            ("software architect", "outline the design"),
            ("developer", "write the change"),
            ("tester", "plan the tests"),
            ("security reviewer", "look for weaknesses"),
        ),
        (("change request", "data_entity"), ("repository overview", "data_reference")),
    ),
    Domain(
        "commerce",
        "orders|an order|the order|new order|each order|order lines|shop|store|stock|inventory"
        "|warehouse|shipping|shipment*|return|returns|refund*|bestellung*|lager*|versand|pedido*|tienda|envio*|commande*|livraison|注文|在庫",
        "order",
        "an order that reaches the customer",
        (
            ("order checker", "check the order lines"),
            ("stock keeper", "look up the stock"),
            ("shipping planner", "plan the shipment"),
            ("refund clerk", "calculate the refund"),
        ),
        (("order", "data_entity"), ("product catalog", "data_reference")),
    ),
    Domain(
        "reports",
        "report|figures|statistics|dashboard*|metrics|bericht|berichte|kennzahl*|informe*|rapport*"
        "|レポート",
        "report",
        "a report people can rely on",
        (
            ("figures collector", "collect the figures"),
            ("figures analyst", "analyse the figures"),
            ("report writer", "write the report"),
            ("plausibility checker", "check the figures"),
        ),
        (("report text", "data_entity"), ("figures of earlier reports", "data_reference")),
    ),
)
GENERAL: Final = Domain(
    "general",
    "",
    "request",
    "a result the person can use",
    (
        ("analyst", "analyse the request"),
        ("specialist", "work out the result"),
        ("editor", "put the result into words"),
        ("quality checker", "check the result"),
    ),
    (("request", "data_entity"),),
)

#: What people do who are named by a brief: the last word of their name, and the words of a tool.
ROLES: Final = {
    "accountant": "check the accounts",
    "adjuster": "estimate the damage",
    "analyst": "analyse the figures",
    "architect": "outline the design",
    "assessor": "assess the case",
    "auditor": "check the records",
    "author": "write the text",
    "checker": "check the facts",
    "clerk": "file the case",
    "copywriter": "write the copy",
    "coach": "prepare the exercises",
    "counsel": "check the legal terms",
    "critic": "point out the weak points",
    "designer": "sketch the design",
    "developer": "write the change",
    "economist": "estimate the effects",
    "editor": "correct the language",
    "examiner": "examine the documents",
    "illustrator": "describe the picture",
    "interviewer": "prepare the questions",
    "lawyer": "check the legal terms",
    "marketer": "outline the campaign",
    "nurse": "note the condition",
    "negotiator": "prepare the negotiation",
    "philosopher": "question the assumptions",
    "planner": "plan the steps",
    "physician": "assess the condition",
    "reader": "extract the facts",
    "recruiter": "compare the applicants",
    "reporter": "collect the facts",
    "researcher": "search the sources",
    "reviewer": "review the draft",
    "scientist": "analyse the evidence",
    "strategist": "outline the strategy",
    "tester": "plan the tests",
    "translator": "translate the text",
    "tutor": "explain the subject",
    "writer": "write the draft",
}
#: Names of people that say nothing by themselves: the words before them tell what they know.
KNOWERS: Final = frozenset(
    {"adviser", "advisor", "agent", "consultant", "engineer", "expert", "specialist"}
)

_RANKS: Final = frozenset({"chief", "junior", "lead", "principal", "senior"})
#: What those do who are called after their place in a pattern.
_PLACES: Final = {
    "first line": "answer from what is known",
    "second line": "examine the difficult case",
    "expert": "decide the hardest case",
    "summarizer": "write the summary",
}

#: Services by the words that name them. Those that only carry messages are told apart.
SERVICES: Final = {
    "Airtable": "airtable",
    "Asana": "asana",
    "Confluence": "confluence",
    "Datadog": "datadog",
    "GitHub": "github",
    "GitLab": "gitlab",
    "GoogleCalendar": "google calendar|google kalender",
    "GoogleDrive": "google drive",
    "GoogleSheets": "google sheets|google sheet",
    "HubSpot": "hubspot",
    "Jira": "jira",
    "Notion": "notion",
    "Sap": "sap",
    "Salesforce": "salesforce",
    "ServiceNow": "servicenow",
    "SharePoint": "sharepoint",
    "Shopify": "shopify",
    "Stripe": "stripe",
    "Zendesk": "zendesk",
    "Discord": "discord",
    "Email": "by email|by e mail|send an email|sends an email|an email to|email to|emailed to"
    "|per mail|emails the|email the|e mail to|per e mail|por correo|par courriel|メールで",
    "MicrosoftTeams": "microsoft teams|ms teams",
    "PagerDuty": "pagerduty",
    "Slack": "slack",
    "Sms": "sms|text message*",
    "Telegram": "telegram",
    "Twilio": "twilio",
    "WhatsApp": "whatsapp",
}
MESSENGERS: Final = frozenset(
    {"Discord", "Email", "MicrosoftTeams", "PagerDuty", "Slack", "Sms", "Telegram", "Twilio"}
    | {"WhatsApp"}
)


def find_domain(wording: Wording) -> Domain:
    """Return the domain most words of a text speak for; of equal ones the first, else GENERAL."""
    best, most = GENERAL, 0
    for domain in DOMAINS:
        found = sum(wording.count(term) for term in domain.terms.split("|"))
        if found > most:
            best, most = domain, found
    return best


def task_of(specialist: str, domain: Domain) -> str:
    """Return what somebody does, in words of a tool: as the domain says, else by the role."""
    known = {**dict(GENERAL.team), **dict(domain.team)}
    known |= {f"{domain.thing} {place}": task for place, task in _PLACES.items()}
    if specialist.lower() in known:
        return known[specialist.lower()]
    subject, _, role = specialist.lower().rpartition(" ")
    subject = " ".join(it for it in subject.split() if it not in _RANKS)
    if role in KNOWERS:
        return f"work out the {subject} part" if subject else "work out the answer"
    return ROLES.get(role, f"do the work of the {specialist.lower()}")


def kind_of_data(name: str, domain: Domain) -> SourceKind:
    """Return whether something is looked up or kept: as the domain says, else by its words."""
    known = dict(domain.data)
    if name.lower() in known:
        return known[name.lower()]
    looked_up = "record*|profile*|policy|policies|catalog*|list*|history|base|guide*|library|rate*"
    return "data_reference" if Wording(name).has(looked_up) else "data_entity"


def usual_team(wording: Wording, domain: Domain) -> tuple[str, ...]:
    """Return who takes part where nobody is named: three of the domain, and who is spoken of."""
    first, more = domain.team[:3], domain.team[3:]
    spoken_of = [it for it in more if wording.has(f"{it[0].split()[0]}|{it[1].split()[-1]}")]
    return tuple(name for name, _ in (*first, *spoken_of))
