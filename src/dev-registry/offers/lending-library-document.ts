/** OpenAPI 3.1 as YAML, with anchors, folded text and a 3.1 schema: a list of types, `const`, several examples. */
export function lendingLibraryYaml(version: string): string {
  return `openapi: 3.1.0
info:
  title: Lending Library
  version: ${version}
  summary: Books, loans and reservations
  description: >
    The catalogue of a public library.
    Loans last four weeks and can be renewed twice.
servers:
  - url: http://127.0.0.1:{port}/library
    variables:
      port: { default: "8200", description: The port the library listens on }
security:
  - cardNumber: []
paths:
  /books:
    get:
      operationId: searchBooks
      summary: Search the catalogue
      parameters:
        - name: text
          in: query
          required: true
          description: Words of title or author
          schema: { type: string, minLength: 2, examples: [tapir, "le guin"] }
        - &limit
          name: limit
          in: query
          schema: { type: integer, minimum: 1, maximum: 50, default: 10 }
      responses:
        "200":
          description: The books found
          content:
            application/json:
              schema: { type: array, items: { $ref: "#/components/schemas/Book" } }
  /books/{isbn}/reservation:
    parameters:
      - name: isbn
        in: path
        required: true
        schema: { type: string, pattern: "^[0-9]{13}$" }
    put:
      operationId: reserveBook
      summary: Reserve a book
      responses:
        "204": { description: Reserved }
        "404": &problem
          description: What was wrong
          content:
            application/json:
              schema: { $ref: "#/components/schemas/Problem" }
    delete:
      operationId: cancelReservation
      summary: Cancel a reservation
      responses:
        "204": { description: Cancelled }
        "404": *problem
  /loans:
    get:
      operationId: listLoans
      summary: List what is lent to the card's owner
      parameters:
        - *limit
      responses:
        "200":
          description: The loans, the soonest due first
          content:
            application/json:
              schema: { type: array, items: { $ref: "#/components/schemas/Loan" } }
  /loans/{loanId}/renewals:
    post:
      operationId: renewLoan
      summary: Keep a book for four more weeks
      parameters:
        - { name: loanId, in: path, required: true, schema: { type: integer, minimum: 1 } }
      responses:
        "200":
          description: The loan
          content:
            application/json:
              schema: { $ref: "#/components/schemas/Loan" }
        "409": *problem
components:
  schemas:
    Book:
      type: object
      required: [isbn, title, authors]
      properties:
        isbn: { type: string }
        title: { type: string }
        authors: { type: array, items: { type: string } }
        year: { type: [integer, "null"] }
    Loan:
      type: object
      required: [id, book, dueOn, renewals]
      properties:
        id: { type: integer }
        kind: { const: loan }
        book: { $ref: "#/components/schemas/Book" }
        dueOn: { type: string, format: date }
        renewals: { type: integer, minimum: 0, maximum: 2 }
    Problem:
      type: object
      required: [message]
      properties:
        message: { type: string }
  securitySchemes:
    cardNumber: { type: apiKey, in: header, name: X-Library-Card }
`;
}
